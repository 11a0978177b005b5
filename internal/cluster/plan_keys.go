package cluster

import (
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

func planKeys(want Spec, have Snapshot) keyPlan {
	k := keyPlan{want: want, have: have}

	if want.Rotates {
		k.all = holders(want, have).Distinct()
		k.blind = !have.Kubernetes.Reachable && hasEtcd(want, have)
	}

	return k
}

// holders are the known machines of a cluster: its own members, the nodes of others and, in a forecast, their
// recorded keys.
func holders(want Spec, have Snapshot) rotation.Cluster {
	var all rotation.Cluster

	own := map[string]bool{}

	for _, m := range slices.Concat(want.all(), want.Removed) {
		s := have.Machines[m.Name]
		node, found := have.NodeOf(m)
		if !found && s.Access != step.Member && m.NodeName != "" {
			node, _ = have.nodeNamed(m.NodeName, "") // silent, and perhaps at another address
		}

		own[node.Name] = true

		keys := s.Keys
		if s.Access != step.Member {
			keys = node.Keys // its last known keys
		}

		if s.Access == step.Member || node.Name != "" {
			all = append(all, rotation.Holder{Name: m.Name, ControlPlane: m.Role == step.ControlPlane, Keys: keys,
				Settled: NotReady(want, have, m) == "" && s.Busy == ""})
		}
	}

	for _, n := range have.Kubernetes.Nodes {
		// In a forecast, the nodes of others are their recorded control planes.
		if !own[n.Name] && len(want.OtherHolders) == 0 {
			all = append(all, rotation.Holder{Name: n.Name, ControlPlane: n.ControlPlane, Keys: n.Keys, Settled: n.Ready})
		}
	}

	return append(all, want.OtherHolders...)
}

// afterControlPlanes is the spec when an apply reaches it: resources of workers follow those of their control planes.
func (s Spec) afterControlPlanes(have Snapshot) Spec {
	if others := s.OtherHolders; len(others) > 0 && !s.OwnsControlPlane() && len(s.Machines) > 0 {
		all := holders(s, have.indexed())
		s.OtherHolders = others.Ahead(all[:len(all)-len(others)], s.Machines[0].Keys)
	}

	return s
}

// next are the keys of a machine after its next change.
func (k keyPlan) next(m Machine) rotation.Keys {
	has := k.have.Machines[m.Name].Keys

	switch member := k.have.Machines[m.Name].Access == step.Member; {
	case m.Keys == (rotation.Keys{}) || member && has == (rotation.Keys{}):
		return has // not observed
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

// unknownTo reports whether the rotated keys of the others are unknown: a machine that joins with the wanted ones may
// find no machine that accepts its certificate. Nodes report their keys from their first change on. A worker needs
// control planes that work; the Kubernetes API may be waiting for a control plane.
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

// unknownPlane names what unknownTo waits for: the Kubernetes API, or a control plane that has not reported its keys.
func (k keyPlan) unknownPlane() string {
	if all := holders(k.want, k.have); !k.blind {
		for _, h := range all {
			if h.ControlPlane && h.Keys == (rotation.Keys{}) {
				return h.Name
			}
		}
	}

	return "the Kubernetes API"
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

// moves describes the change of a member's keys.
func (k keyPlan) moves(m Machine, next rotation.Keys) string {
	return strings.Join(rotation.Changes(k.have.Machines[m.Name].Keys, next), ", ")
}

// KeysPending names the machines of others that keep machines of the spec from their wanted keys. It has none while
// the spec itself can still do something, or when nothing is left to do.
func KeysPending(want Spec, have Snapshot) []string {
	want, have = want.Ordered(), have.indexed()
	k := planKeys(want, have)

	for _, m := range want.all() {
		if s := have.Machines[m.Name]; s.Access == step.Member && s.Keys != m.Keys && k.next(m) == s.Keys {
			return slices.DeleteFunc(holders(want, have).Blocking(m.Keys), func(name string) bool {
				_, own := want.Find(name)

				return own
			})
		}
	}

	return nil
}

// HoldersOf are the machines of other resources among the nodes of a cluster, for the recorded state.
func HoldersOf(want Spec, have Snapshot) rotation.Cluster {
	want.OtherHolders = nil

	return slices.DeleteFunc(holders(want.Ordered(), have.indexed()), func(h rotation.Holder) bool {
		_, own := want.Find(h.Name)

		return own
	})
}
