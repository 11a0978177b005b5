package cluster

import "github.com/talosop/terraform-provider-talosop/internal/cluster/step"

// Phase is how far the lifecycle of a cluster, or of a pool of machines, has come.
type Phase string

// The phases, in the order of a create. Degraded is for clusters that were Ready and then lost something that the
// next apply can repair.
const (
	Provisioning  Phase = "Provisioning"
	Bootstrapping Phase = "Bootstrapping"
	Joining       Phase = "Joining"
	Ready         Phase = "Ready"
	Degraded      Phase = "Degraded"
)

// PhaseOf derives the phase from the observation.
func PhaseOf(want Spec, have Snapshot) Phase {
	switch {
	case len(Unready(want, have)) == 0:
		return Ready
	case want.OwnsBootstrap() && len(have.Etcd.Members) > 0, !want.OwnsBootstrap() && HasMembers(want, have):
		return Joining
	case HasMembers(want, have):
		return Bootstrapping
	default:
		return Provisioning
	}
}

// HasMembers reports whether any machine of the spec belongs to its cluster.
func HasMembers(want Spec, have Snapshot) bool {
	for _, m := range want.Machines {
		if have.Machines[m.Name].Access == step.Member {
			return true
		}
	}

	return false
}
