package machines

import (
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// finished reports whether a removed machine waits in maintenance mode, or is gone in case of a container, and left
// nothing behind, as far as a run observed; or belongs to another resource.
func (r run) finished(m cluster.Machine) bool {
	have := r.result.Snapshot

	if cluster.OwnedByOther(have, m) {
		return true
	}

	ended := step.Maintenance
	if m.Platform().Deleted {
		ended = step.Gone
	}

	if have.Machines[m.Name].Access != ended || !have.Kubernetes.Reachable {
		return false
	}

	if i := slices.IndexFunc(have.Kubernetes.Nodes, func(n kubestate.Node) bool { return n.Name == m.NodeName }); i >= 0 {
		return false
	}

	return m.Role != step.ControlPlane || have.Etcd.Known &&
		!slices.ContainsFunc(have.Etcd.Members,
			func(e etcdstate.Member) bool { return e.ID == m.MemberID || e.Name == m.NodeName })
}

// departed reports whether a machine of state left the resource in a run, or got another name: only what is
// unfinished stays a difference.
func (r run) departed(name string) bool {
	for _, from := range r.Renamed {
		if from == name {
			return true
		}
	}

	return slices.ContainsFunc(r.want.Removed, func(m cluster.Machine) bool { return m.Name == name && r.finished(m) })
}
