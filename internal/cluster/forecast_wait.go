package cluster

import (
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// A run that waits continues when its wait ends. A forecast includes what follows: it assumes that waits end, in the
// most likely order.

// mostWaits is how often a forecast continues after a wait. Each wait changes all machines alike, so a few are
// enough.
const mostWaits = 10

// await ends what the holds of a decision wait for; false when nothing is left that could.
func (s *Snapshot) await(want Spec, p Policy) bool {
	for _, happens := range []func(Spec, Policy) bool{
		s.awaitBoots, s.awaitAnswers, s.awaitNodes, s.awaitDeath, s.awaitHelp,
	} {
		if happens(want, p) {
			return true
		}
	}

	return false
}

// mergeHolds adds holds of machines that have none yet.
func mergeHolds(before, more []step.Hold) []step.Hold {
	for _, h := range more {
		same := func(b step.Hold) bool { return b == h || h.Machine != "" && b.Machine == h.Machine }
		if !slices.ContainsFunc(before, same) {
			before = append(before, h)
		}
	}

	return before
}

// awaitBoots finishes the Talos sequences of machines that were observed in one, or without a stage. Machines that
// have no etcd to join wait for one.
func (s *Snapshot) awaitBoots(want Spec, _ Policy) (changed bool) {
	for _, m := range want.Known() {
		state := s.Machines[m.Name]
		if state.Access != step.Member || state.Stage == step.StageBooting || state.Stage == step.StageRunning {
			continue
		}

		state.Stage = step.StageBooting
		s.Machines[m.Name] = state
		changed = true
	}

	return changed
}

// awaitAnswers makes a known etcd and Kubernetes answer, and lets machines join.
func (s *Snapshot) awaitAnswers(want Spec, _ Policy) bool {
	begun := etcdBeginning(want.everyControlPlane(), *s) || len(s.Etcd.Members) > 0 || etcdElsewhere(*s) != "" ||
		!want.OwnsBootstrap()
	silent := !s.Etcd.Known || !s.Kubernetes.Reachable

	if begun && silent {
		s.Etcd.Known, s.Kubernetes.Reachable = true, true
	}

	before := s.clone()
	s.joinAll(want)

	return begun && silent || s.joined(before)
}

// joined reports whether a machine of the model works that did not before.
func (s *Snapshot) joined(before Snapshot) bool {
	for name, state := range s.Machines {
		if was := before.Machines[name]; was.Stage != state.Stage || was.Ready != state.Ready {
			return true
		}
	}

	return false
}

// awaitNodes makes the nodes of working machines ready, and lets other clients uncordon theirs.
func (s *Snapshot) awaitNodes(want Spec, _ Policy) (changed bool) {
	for i := range s.Kubernetes.Nodes {
		n := &s.Kubernetes.Nodes[i]
		runs := slices.ContainsFunc(want.upgraded(), func(m Machine) bool {
			own, ok := s.NodeOf(m)

			return ok && own.Name == n.Name && s.Machines[m.Name].Access == step.Member
		})

		if runs && !n.Ready {
			n.Ready, changed = true, true
		}
	}

	return changed
}

// awaitDeath keeps leaving machines silent until they count as dead.
func (s *Snapshot) awaitDeath(want Spec, p Policy) bool {
	later := *s
	later.Time = s.Time.Add(p.DeadAfter + time.Second)

	died := slices.ContainsFunc(want.Known(),
		func(m Machine) bool { return silentFor(later, m, p) && !silentFor(*s, m, p) })
	if died {
		s.Time = later.Time
	}

	return died
}

// awaitHelp lets an operator remove the members that lost their data, where etcd cannot work without them by itself.
func (s *Snapshot) awaitHelp(want Spec, _ Policy) (changed bool) {
	for _, m := range slices.Concat(want.sorted(step.ControlPlane), want.removed(step.ControlPlane)) {
		member, ok := formerMember(want, *s, m)
		if state := s.Machines[m.Name]; ok && state.Access != step.Member {
			s.removeMember(member.ID)

			changed = true
		}
	}

	return changed
}
