package cluster

import (
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// keyPlan decides which keys machines carry next, by what all machines of the cluster carry.
type keyPlan struct {
	want Spec
	have Snapshot
	all  rotation.Cluster
	// blind is true while nobody says which machines there are beside those of the spec.
	blind bool
}

func planKeys(want Spec, have Snapshot) keyPlan {
	k := keyPlan{want: want, have: have}

	if want.Rotates {
		k.all = holders(want, have).Distinct()
		k.blind = !have.Kubernetes.Reachable && hasEtcd(want, have)
	}

	return k
}

// holders are the machines of a cluster, as far as they are known: its own members, the nodes of others and, in a
// forecast, what was recorded of these.
func holders(want Spec, have Snapshot) rotation.Cluster {
	var all rotation.Cluster

	own := map[string]bool{}

	for _, m := range slices.Concat(want.all(), want.Removed) {
		s := have.Machines[m.Name]
		node, _ := have.NodeOf(m)
		own[node.Name] = true

		keys := s.Keys
		if s.Access != step.Member {
			keys = node.Keys // what it had when it was last heard of
		}

		if s.Access == step.Member || node.Name != "" {
			all = append(all, rotation.Holder{Name: m.Name, ControlPlane: m.Role == step.ControlPlane, Keys: keys,
				Settled: NotReady(want, have, m) == "" && s.Busy == ""})
		}
	}

	for _, n := range have.Kubernetes.Nodes {
		// The nodes of others in a forecast are those of their control planes, which were recorded.
		if !own[n.Name] && len(want.OtherHolders) == 0 {
			all = append(all, rotation.Holder{Name: n.Name, ControlPlane: n.ControlPlane, Keys: n.Keys, Settled: n.Ready})
		}
	}

	return append(all, want.OtherHolders...)
}

// afterControlPlanes is a spec when an apply comes to it: resources of workers follow those of their control planes.
func (s Spec) afterControlPlanes(have Snapshot) Spec {
	if others := s.OtherHolders; len(others) > 0 && !s.OwnsControlPlane() && len(s.Machines) > 0 {
		all := holders(s, have.indexed())
		s.OtherHolders = others.Ahead(all[:len(all)-len(others)], s.Machines[0].Keys)
	}

	return s
}

// next are the keys that a machine carries after its next change.
func (k keyPlan) next(m Machine) rotation.Keys {
	has := k.have.Machines[m.Name].Keys

	switch member := k.have.Machines[m.Name].Access == step.Member; {
	case m.Keys == (rotation.Keys{}) || member && has == (rotation.Keys{}):
		return has // nobody asked
	case !k.want.Rotates:
		return m.Keys
	case !member:
		return k.all.Next(rotation.Keys{}, m.Keys, m.Role == step.ControlPlane)
	case k.blind:
		return has
	default:
		return k.all.Next(has, m.Keys, m.Role == step.ControlPlane)
	}
}

// unknownTo reports whether it is unknown what the others carry of keys that are turned over: a machine that joins with
// the wanted ones may find no machine that takes its certificate. Nodes tell from their first change of keys on. A
// worker needs control planes that work; a control plane may be what the Kubernetes API waits for.
func (k keyPlan) unknownTo(m Machine, p Policy) bool {
	switch {
	case m.Keys == (rotation.Keys{}) || !k.want.Rotates:
		return false
	case m.Role == step.Worker:
		return k.blind || slices.ContainsFunc(k.all, func(h rotation.Holder) bool {
			return h.ControlPlane && h.Keys == (rotation.Keys{})
		})
	default:
		return k.blind && mayComeBack(k.have, p) && !AwaitsRestore(k.want, k.have)
	}
}

// blindWorker names a worker of the spec that cannot join yet because of unknownTo; empty where there is none.
func (k keyPlan) blindWorker(p Policy) string {
	joining := slices.Clone(k.want.sorted(step.Worker))
	for _, w := range k.want.waiting {
		joining = append(joining, w.machine)
	}

	for _, m := range joining {
		if m.Role == step.Worker && k.have.Machines[m.Name].Access == step.Maintenance && k.unknownTo(m, p) {
			return m.Name
		}
	}

	return ""
}

// moves says what becomes of the keys of a member.
func (k keyPlan) moves(m Machine, next rotation.Keys) string {
	return strings.Join(rotation.Changes(k.have.Machines[m.Name].Keys, next), ", ")
}

// KeysPending names the machines of others for which machines of the spec do not carry the wanted keys yet; none while
// the spec itself has something to do about it, or nothing is left to be done.
func KeysPending(want Spec, have Snapshot) []string {
	want, have = want.Ordered(), have.indexed()
	k := planKeys(want, have)

	for _, m := range want.all() {
		if s := have.Machines[m.Name]; s.Access == step.Member && s.Keys != m.Keys && k.next(m) == s.Keys {
			return slices.DeleteFunc(holders(want, have).InTheWay(m.Keys), func(name string) bool {
				_, own := want.Find(name)

				return own
			})
		}
	}

	return nil
}

// HoldersOf are the machines of other resources among the nodes of a cluster, to be recorded.
func HoldersOf(want Spec, have Snapshot) rotation.Cluster {
	want.OtherHolders = nil

	return slices.DeleteFunc(holders(want.Ordered(), have.indexed()), func(h rotation.Holder) bool {
		_, own := want.Find(h.Name)

		return own
	})
}
