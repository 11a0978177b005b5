package lifecycle

import (
	"context"
	"maps"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// Refresh asks every machine of want, what etcd looks like from each of its control planes, and the Kubernetes API,
// once and side by side. Unlike Examine it asks no machine of another resource. It changes nothing.
//
// A member without a leader answers for its own status and for nothing else, so its member list is not asked for: the
// call would end with its deadline.
func (r *Runner) Refresh(ctx context.Context, want cluster.Spec) cluster.Snapshot {
	o := newObserver(r, want).withViews()
	o.reads = true

	return o.observe(ctx)
}

// goesBack is the version that an earlier run told etcd to go back to, as any member says. A run reads it in the views.
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
