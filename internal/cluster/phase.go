package cluster

import "github.com/talosop/terraform-provider-talosop/internal/cluster/step"

// Phase says how far the life of a cluster, or of a pool of machines, has come.
type Phase string

// The phases in the order in which a create passes them; Degraded is left to
// clusters that were Ready and then lost something the next apply can repair.
const (
	Provisioning  Phase = "Provisioning"
	Bootstrapping Phase = "Bootstrapping"
	Joining       Phase = "Joining"
	Ready         Phase = "Ready"
	Degraded      Phase = "Degraded"
)

// PhaseOf derives the phase from what was observed.
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

// Unready is what machines lack that are no working part of the cluster yet, by their names; see [NotReady].
func Unready(want Spec, have Snapshot) map[string]string {
	lacks := map[string]string{}
	have = have.indexed()

	for _, m := range want.all() {
		if reason := NotReady(want, have, m); reason != "" {
			lacks[m.Name] = reason
		}
	}

	return lacks
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
