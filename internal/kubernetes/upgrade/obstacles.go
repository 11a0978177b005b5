package upgrade

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Obstacles are what an upgrade of Kubernetes would run into. They stop no upgrade: the user decides
// whether one matters.
type Obstacles struct {
	// Settings of components that the new version does not know any more. A component does
	// not start with a flag like that.
	Settings []RemovedSetting
	// Resources that the new version does not serve any more, and of which there are objects.
	Resources []RemovedResource
	// Requests that clients made of an API that the new version does not serve any more.
	Requests []RemovedRequest
	// Problems are there with any version.
	Problems []Problem
}

// RemovedSetting is a setting of a component that a version of Kubernetes removed.
type RemovedSetting struct {
	// Kind is "flag", "feature gate" or "admission plugin".
	Kind      string
	Name      string
	Component string
	// Nodes have it, as they were named to [Upgrade.UpgradeChecks].
	Nodes []string
	// RemovedIn is the version without it, such as 1.36.
	RemovedIn string
}

// String is a line for a person.
func (s RemovedSetting) String() string {
	return fmt.Sprintf("%s %s of %s on %s is removed in Kubernetes %s", s.Kind, s.Name, s.Component,
		strings.Join(s.Nodes, ", "), s.RemovedIn)
}

// RemovedResource is a resource that a version of Kubernetes removed, with objects.
type RemovedResource struct {
	// Resource is such as podsecuritypolicies.v1beta1.policy.
	Resource string
	// Objects are the names of some of them, with their namespaces; Count is the number of all.
	Objects   []string
	Count     int
	RemovedIn string
}

// String is a line for a person.
func (r RemovedResource) String() string {
	text := fmt.Sprintf("%s is removed in Kubernetes %s and has %d objects", r.Resource, r.RemovedIn, r.Count)
	if len(r.Objects) == 0 {
		return text
	}

	text += ": " + strings.Join(r.Objects, ", ")
	if more := r.Count - len(r.Objects); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}

	return text
}

// RemovedRequest is an API that a client requested since an API server started, and that a version of Kubernetes
// removes. The audit log of the cluster names the client, if there is one.
type RemovedRequest struct {
	Group, Version, Resource, Subresource string
	RemovedIn                             string
}

func (r RemovedRequest) name() string {
	name := strings.TrimSuffix(r.Resource+"."+r.Version+"."+r.Group, ".")
	if r.Subresource != "" {
		name += "/" + r.Subresource
	}

	return name
}

// String is a line for a person.
func (r RemovedRequest) String() string {
	return fmt.Sprintf("%s is removed in Kubernetes %s and was requested by a client", r.name(), r.RemovedIn)
}

// Lines are what the new version removes, each a line for a person.
func (o Obstacles) Lines() []string {
	var lines []string

	for _, s := range o.Settings {
		lines = append(lines, s.String())
	}

	for _, r := range o.Resources {
		lines = append(lines, r.String())
	}

	for _, r := range o.Requests {
		lines = append(lines, r.String())
	}

	return lines
}

// add merges what was found on one node, or by one server.
func (o *Obstacles) add(found Obstacles) {
	for _, s := range found.Settings {
		at := slices.IndexFunc(o.Settings, func(other RemovedSetting) bool { return compareSettings(s, other) == 0 })
		if at < 0 {
			o.Settings = append(o.Settings, s)

			continue
		}

		o.Settings[at].Nodes = slices.Compact(slices.Sorted(slices.Values(slices.Concat(o.Settings[at].Nodes, s.Nodes))))
	}

	o.Resources = append(o.Resources, found.Resources...)
	o.Problems = append(o.Problems, found.Problems...)

	for _, r := range found.Requests {
		if !slices.Contains(o.Requests, r) {
			o.Requests = append(o.Requests, r)
		}
	}
}

func (o *Obstacles) sort() {
	slices.SortFunc(o.Settings, compareSettings)
	slices.SortFunc(o.Resources, func(a, b RemovedResource) int { return strings.Compare(a.Resource, b.Resource) })
	slices.SortFunc(o.Requests, func(a, b RemovedRequest) int { return strings.Compare(a.String(), b.String()) })
	slices.SortFunc(o.Problems, func(a, b Problem) int { return strings.Compare(a.String(), b.String()) })
}

// compareSettings orders settings independently of the nodes.
func compareSettings(a, b RemovedSetting) int {
	return cmp.Or(strings.Compare(a.Component, b.Component), strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Name, b.Name),
		strings.Compare(a.RemovedIn, b.RemovedIn))
}
