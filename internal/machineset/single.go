package machineset

import (
	"net/url"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// RefuseEndpoint refuses a new machine whose own address is the endpoint of a cluster that is created first: the
// cluster waits for a Kubernetes API there, and the machine waits for the cluster.
func (p Set) RefuseEndpoint() finding.List {
	endpoint, err := url.Parse(p.Settings.Endpoint)
	if err != nil || !p.Single || !p.Joins || !p.Unknown.Has(UnknownCluster) {
		return nil
	}

	for _, m := range p.Machines {
		if m.Address != "" && SameAddress(endpoint.Hostname(), m.Address) {
			return finding.List{endpointOfMachine.At(finding.Root("cluster").AtName("endpoint"),
				finding.Args{"endpoint": p.Settings.Endpoint})}
		}
	}

	return nil
}

// ControlPlanesAt is a control plane of another resource.
func ControlPlanesAt(endpoint string) cluster.Machine {
	return cluster.MachineAt("control plane "+endpoint, step.ControlPlane, endpoint)
}

// alone reports whether a machine that is its own resource is the only control plane in the handle.
func (p Set) alone() bool {
	return p.Single && p.OwnsControlPlane() && p.Others != nil && len(p.Others) == 0
}

// OtherControlPlanes are the control planes of other resources that a plan accounts for: those in the handle. If the
// handle lists none, or if one more would make an etcd of two, which can lose none, the plan assumes that there are
// others. The list may be incomplete, and the run asks etcd itself.
func (p Set) OtherControlPlanes() []cluster.Machine {
	var beside []cluster.Machine

	enough := 2

	switch {
	case p.TakesCluster():
		return nil
	case !p.OwnsControlPlane():
		enough = 1

		for _, endpoint := range p.Endpoints {
			beside = append(beside, ControlPlanesAt(endpoint))
		}
	case p.alone():
		return nil
	default:
		beside = slices.Clone(p.Others)
	}

	return append(beside, unlisted(max(0, enough-len(beside)))...)
}

// AskedBeforeEtcd are the control planes of other resources that must have no etcd before one begins in the set. A
// member that lost its disk joins again through them. They are those in the handle, or the last observed ones where
// the set takes the cluster. Such a set asks them only while it has no etcd of its own, or before a restore; at any
// other time etcd names its members.
func (p Set) AskedBeforeEtcd(recorded PriorState) []cluster.Machine {
	if !p.Single && p.Restore.Asked(recorded.RestoredFrom) == "" && !recorded.withoutControlPlane() {
		return nil
	}

	return p.Others
}

// withoutControlPlane reports whether none of the recorded control planes is known to run.
func (r PriorState) withoutControlPlane() bool {
	for _, m := range r.Machines {
		if m.Role == step.ControlPlane && m.Access != step.Maintenance && m.Access != step.Gone {
			return false
		}
	}

	return len(r.Machines) > 0
}

// unlisted are up to two control planes that are assumed to exist.
func unlisted(n int) []cluster.Machine {
	var others []cluster.Machine

	for _, name := range []string{"some other control plane", "yet another control plane"}[:n] {
		others = append(others, cluster.MachineAt(name, step.ControlPlane, name))
	}

	return others
}
