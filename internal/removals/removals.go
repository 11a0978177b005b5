// Package removals knows which arguments of its components a version of Kubernetes no longer has. A component does not
// start with one of them. Flags, feature gates and admission plugins are those of
// github.com/siderolabs/go-kubernetes, the library of talosctl upgrade-k8s. The group versions of APIs are in a table
// that is generated from k8s.io/api. Pure.
package removals

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/go-kubernetes/kubernetes/upgrade"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// Setting is a part of the arguments of a component.
type Setting struct {
	// Kind is "flag", "feature gate", "admission plugin" or "API version".
	Kind, Name string
	Component  kubenames.Component
	// since and until are the first and last minor versions of Kubernetes 1 that have it, as far as known.
	since, until uint64
}

// String names the setting, such as "flag --a of kubelet".
func (s Setting) String() string { return fmt.Sprintf("%s %s of %s", s.Kind, s.Name, s.Component) }

// RemovedIn is the minor version of Kubernetes 1 that removed it.
func (s Setting) RemovedIn() uint64 { return s.until + 1 }

// AddedAfter is true for a setting that a newer version of Kubernetes than 1.<minor> added.
func (s Setting) AddedAfter(minor uint64) bool { return s.since > minor }

// Versions are those of Kubernetes that have it, such as "v1.35 and older".
func (s Setting) Versions() string {
	switch {
	case s.until == 0:
		return "no version"
	case s.since <= oldest:
		return fmt.Sprintf("v1.%d and older", s.until)
	case s.until >= newest:
		return fmt.Sprintf("v1.%d and newer", s.since)
	case s.since == s.until:
		return fmt.Sprintf("v1.%d", s.since)
	default:
		return fmt.Sprintf("v1.%d to v1.%d", s.since, s.until)
	}
}

// Of finds what Kubernetes 1.<minor> does not have among the arguments of a component, such as "--a=b". Nothing is
// known of flags before Kubernetes 1.24, and of newer versions than the library and the table have.
func Of(component kubenames.Component, arguments []string, minor uint64) ([]Setting, error) {
	if len(arguments) == 0 {
		return nil, nil
	}

	key := fmt.Sprint(component, minor, arguments)
	if known, is := results.Load(key); is {
		return known.([]Setting), nil //nolint:forcetypeassert,errcheck // it stores nothing else
	}

	var found []Setting

	for in := firstChecked; in <= minor; in++ {
		removed, err := removedIn(component, arguments, in)
		if err != nil {
			return nil, err
		}

		found = append(found, removed...)
	}

	if component == kubenames.KubeAPIServer {
		found = append(found, unregistered(arguments, minor)...)
	}

	results.Store(key, found)

	return found, nil
}

// results are those of Of: the machines of a cluster share their arguments.
var results sync.Map

// firstChecked is the first minor version whose removals go-kubernetes 0.2.41 has.
const firstChecked = uint64(25)

// removedIn asks go-kubernetes what the upgrade to a minor version removes. It has its tables only inside of a check of
// the resources of a machine.
func removedIn(component kubenames.Component, arguments []string, minor uint64) ([]Setting, error) {
	path, err := upgrade.NewPath(fmt.Sprintf("1.%d.0", minor-1), fmt.Sprintf("1.%d.0", minor))
	if err != nil {
		return nil, fmt.Errorf("check for removals of Kubernetes 1.%d: %w", minor, err)
	}

	of := func(context.Context, string) (state.State, error) { return machine{nil, component, arguments}, nil }

	checks, err := upgrade.NewChecksWithStateProvider(path, of, nil, []string{""}, nil, func(string, ...any) {})
	if err != nil {
		return nil, fmt.Errorf("check for removals of Kubernetes 1.%d: %w", minor, err)
	}

	var removed upgrade.ComponentRemovedItemsError
	if err := checks.Run(context.Background()); err != nil && !errors.As(err, &removed) {
		return nil, fmt.Errorf("check for removals of Kubernetes 1.%d: %w", minor, err)
	}

	var found []Setting

	for _, kind := range []struct {
		name, prefix string
		items        []upgrade.ComponentItem
	}{
		{"flag", "--", removed.CLIFlags}, {"feature gate", "", removed.FeatureGates},
		{"admission plugin", "", removed.AdmissionFlags},
	} {
		for _, item := range kind.items {
			found = append(found, Setting{kind.name, kind.prefix + item.Value, component, 0, minor - 1})
		}
	}

	return found, nil
}

// machine is one that runs a component, as far as the check asks.
type machine struct {
	state.State

	component kubenames.Component
	arguments []string
}

// Get implements state.State.
func (m machine) Get(_ context.Context, p resource.Pointer, _ ...state.GetOption) (resource.Resource, error) {
	if p.ID() != string(m.component) {
		return nil, missingError{}
	}

	if m.component == kubenames.Kubelet {
		spec := k8s.NewKubeletSpec(k8s.NamespaceName, k8s.KubeletID)
		spec.TypedSpec().Args = m.arguments

		return spec, nil
	}

	pod := k8s.NewStaticPod(k8s.NamespaceName, p.ID())
	pod.TypedSpec().Pod = map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"command": m.arguments}}}}

	return pod, nil
}

// missingError is about a resource that a machine does not have.
type missingError struct{}

func (missingError) Error() string { return "there is no such resource" }

// NotFoundError implements state.ErrNotFound.
func (missingError) NotFoundError() {}

// Arguments are those of a component in a machine configuration, as a command line has them.
func Arguments(extra map[string][]string) []string {
	var arguments []string
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		arguments = append(arguments, "--"+name+"="+strings.Join(extra[name], ","))
	}

	return arguments
}
