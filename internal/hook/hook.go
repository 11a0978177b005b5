// Package hook has the hooks of users: what they do before machines go out of service, and what undoes it once the
// machines are back. They are run by package execute.
package hook

import (
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/healthcheck"
)

// DefaultTimeout is how long each part of a hook is retried until it succeeds, by default.
const DefaultTimeout = 5 * time.Minute

// Scope is what a hook encloses.
type Scope string

// The scopes.
const (
	// Machine is the time in which a machine is out of service.
	Machine Scope = "machine"
	// Rollout is the time from the first machine of a run that goes out of service until the last one is back.
	Rollout Scope = "rollout"
)

// ControlPlanes is the name of the control planes among pools.
const ControlPlanes = "control_plane"

// Hook is one of them.
type Hook struct {
	Name  string
	Scope Scope
	// Pools are those whose machines it is for; empty for all.
	Pools []string
	// Timeout is how long each part is retried until it succeeds.
	Timeout time.Duration
	// Continue is true if a run goes on when a part fails.
	Continue bool
	// Before and After are its parts, of which one may be nil.
	Before, After *Action
}

// Action is a part of a hook. In a plan, an action whose values are unknown has none.
type Action struct {
	// Job is the manifest of a Job of batch/v1.
	Job   string `json:"job,omitempty"`
	Patch *Patch `json:"patch,omitempty"`
	// HTTP is in no record: its URL, headers and body may be secret.
	HTTP *healthcheck.HTTP `json:"-"`
}

// Patch changes an object of the cluster.
type Patch struct {
	APIVersion string `json:"api_version"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Patch is a merge patch, or a list of JSON 6902 operations, in YAML.
	Patch string `json:"patch"`
}

// The placeholders in actions of hooks for each machine.
const (
	machinePlaceholder = "{{machine}}"
	nodePlaceholder    = "{{node}}"
)

// NamesMachine reports whether a text has a placeholder.
func NamesMachine(text string) bool {
	return strings.Contains(text, machinePlaceholder) || strings.Contains(text, nodePlaceholder)
}

// Fill replaces the placeholders in a text.
func Fill(text, machine, node string) string {
	return strings.NewReplacer(machinePlaceholder, machine, nodePlaceholder, node).Replace(text)
}

// NamesMachine reports whether the hook has a placeholder, so that it runs once for each machine. Any other hook runs
// once for all machines that are out of service together.
func (h Hook) NamesMachine() bool {
	named := false

	note := func(text string) string {
		named = named || NamesMachine(text)

		return text
	}

	h.Before.each(note)
	h.After.each(note)

	return named
}

// For is the hook for one machine and its node.
func (h Hook) For(machine, node string) Hook {
	fill := func(text string) string { return Fill(text, machine, node) }
	h.Before, h.After = h.Before.each(fill), h.After.each(fill)

	return h
}

// each is a copy of an action whose texts a function changed.
func (a *Action) each(change func(string) string) *Action {
	if a == nil {
		return nil
	}

	out := Action{Job: change(a.Job)}

	if a.Patch != nil {
		out.Patch = &Patch{APIVersion: a.Patch.APIVersion, Kind: a.Patch.Kind, Namespace: change(a.Patch.Namespace),
			Name: change(a.Patch.Name), Patch: change(a.Patch.Patch)}
	}

	if a.HTTP != nil {
		http := *a.HTTP
		http.URL, http.Body = change(http.URL), change(http.Body)
		out.HTTP = &http
	}

	return &out
}

// Started is a hook that a run began or is about to begin.
type Started struct {
	Hook

	// Key distinguishes it among those of all resources of a cluster.
	Key string
	// Machine and Node are those of a hook that names its machine; empty for others.
	Machine, Node string
}

// String names it in messages.
func (s Started) String() string {
	text := "hook " + s.Name
	if s.Machine != "" {
		text += " for " + s.Machine
	}

	return text
}
