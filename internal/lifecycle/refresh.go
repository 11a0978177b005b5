package lifecycle

import (
	"context"
	"maps"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// Refresh observes every machine of want, etcd as each of its control planes sees it, and the Kubernetes API, once
// and in parallel. Unlike Examine, it asks no machine of another resource. It changes nothing.
//
// A member without a leader reports only its own status. It is not asked for the member list, because that call would
// end with its deadline.
func (r *Runner) Refresh(ctx context.Context, want cluster.Spec) cluster.Snapshot {
	o := newObserver(r, want).withViews()
	o.reads = true
	have := o.observe(ctx)

	if r.Hooks != nil && have.Kubernetes.Reachable {
		have.Hooks = r.recordedHooks(ctx)
	}

	return have
}

// recordedHooks are the names of the hooks that an earlier run left; nil where they cannot be read.
func (r *Runner) recordedHooks(ctx context.Context) []string {
	found, err := r.Hooks.Recorded(ctx)
	if err != nil {
		r.tell(Event{State: Note, Reason: "cannot read which hooks earlier runs began: " + err.Error()})

		return nil
	}

	names := []string{}
	for _, h := range found {
		names = append(names, h.Name)
	}

	return slices.Compact(names)
}

// goesBack is the target of an etcd downgrade that an earlier run enabled, as reported by any member. A run reads it
// from the views.
func (o *observer) goesBack() string {
	o.mu.Lock()
	defer o.mu.Unlock()

	for _, name := range slices.Sorted(maps.Keys(o.views)) {
		if versions := o.views[name].Versions; versions.GoesBack {
			return versions.Data
		}
	}

	return ""
}
