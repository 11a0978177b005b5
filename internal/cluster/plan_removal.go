package cluster

import (
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// Removing machines from a cluster that lives on. Workers are drained, reset and their nodes deleted. Control planes
// leave etcd first, one at a time, while every other one works. A dead machine, or one without its data, is removed
// through another control plane, before anything else, because etcd adds no member while one is down.

// planDepartures removes the etcd members of control planes that are gone.
func planDepartures(want Spec, have Snapshot, p Policy, d *Decision) {
	for _, m := range want.removed(step.ControlPlane) {
		member, ok := memberOfRemoved(want, have, m)
		if !ok || have.Machines[m.Name].Busy != "" {
			continue
		}

		if departed(want, have, m, p) {
			planExpulsion(want, have, m, member, d)
		}
	}
}

// departed is true for a removed machine that cannot take part in its own removal.
//
// A machine with a Ready node lives, even if it is silent or another machine waits in maintenance mode at its
// address: its pods run, and would run twice if its node were deleted.
//
// A machine that this run shut down is gone, and so is a silent one that ends and is already out of its cluster.
func departed(want Spec, have Snapshot, m Machine, p Policy) bool {
	if m.wentAway(have.Machines[m.Name]) || want.Ending && leftBefore(want, have, m) {
		return true
	}

	if stillAtWork(want, have, m) {
		return false
	}

	if node, ok := nodeOfRemoved(want, have, m); ok && node.Ready && have.Kubernetes.Reachable &&
		have.Machines[m.Name].Access == step.Unreachable {
		return false
	}

	s := have.Machines[m.Name]

	gone := s.Access == step.Gone || s.Access == step.Maintenance && !m.hidesHardware(s)

	return gone || silentFor(have, m, p) || TeardownLeft(m, have, p) != "" || answersAsOther(want, have, m)
}

// leftBefore is true for a silent machine of which etcd and Kubernetes have nothing.
func leftBefore(want Spec, have Snapshot, m Machine) bool {
	s := have.Machines[m.Name]
	if s.Access != step.Unreachable || s.Busy != "" || !have.Kubernetes.Reachable {
		return false
	}

	if _, registered := nodeOfRemoved(want, have, m); registered {
		return false
	}

	_, member := memberOfRemoved(want, have, m)

	return m.Role == step.Worker || have.Etcd.Known && !member
}

// unanswered says why a machine that takes part in its removal is unreachable.
func unanswered(want Spec, have Snapshot, m Machine) string {
	if stillAtWork(want, have, m) {
		return waitsBesideItsNode
	}

	return "does not respond" + Because(have.Machines[m.Name].Cause)
}

// planRemovals removes control planes from the cluster. Living ones leave last, one at a time, when nothing else is
// in progress.
func planRemovals(want Spec, have Snapshot, p Policy, d *Decision) {
	var members []Machine

	inHand := removalInHand(want, have, p)

	for _, m := range want.removed(step.ControlPlane) {
		s := have.Machines[m.Name]
		_, isMember := memberOfRemoved(want, have, m)

		switch {
		case d.concerns(m.Name), d.leaving(have, m, p):
		case departed(want, have, m, p) && have.Etcd.Known:
			planRemains(want, have, m, d)
		case s.Access != step.Member && !departed(want, have, m, p):
			d.hold(m.Name, "is not removed yet: %s", unanswered(want, have, m))
		case !have.Etcd.Known:
			d.hold(m.Name, "is removed after etcd responds%s", Because(have.Etcd.Cause))
		case isMember:
			members = append(members, m)
		case mayVote(have, s):
			// It may be a member under an unknown name and address.
			d.hold(m.Name, "is not reset: its etcd runs, but its member is unknown")
		case inHand != "":
			d.hold(m.Name, "is reset after %s is done", inHand)
		case otherDisrupted(want, have, m, p) != "":
			d.hold(m.Name, "is not reset yet: %s", otherDisrupted(want, have, m, p))
		default:
			d.step(m.resetStep())

			inHand = m.Name
		}
	}

	for _, m := range members {
		if inHand != "" {
			d.hold(m.Name, "is removed after %s is done", inHand)

			continue
		}

		planDeparture(want, have, m, p, d)
	}
}

// leaving reports whether a removed machine is busy or on its way out, and then holds it.
func (d *Decision) leaving(have Snapshot, m Machine, p Policy) bool {
	s := have.Machines[m.Name]

	switch {
	case s.Busy != "":
		d.hold(m.Name, "%s", s.Busy)
	case s.Resetting && TeardownLeft(m, have, p) == "" && !m.ended(s):
		d.hold(m.Name, "%s%s", m.stillResetting(), Because(s.Cause))
	default:
		return false
	}

	return true
}

// mayVote is true for a control plane whose etcd runs, as far as is known. A run does not ask a running and ready
// machine, whose etcd does.
func mayVote(have Snapshot, s step.MachineState) bool {
	notAsked := have.Etcd.Views != nil && s.EtcdService == "" && s.Stage == step.StageRunning && s.Ready

	return s.MemberID != "" || s.EtcdService == step.ServiceRunning || notAsked
}

// leavesByItself is true for a member whose etcd can take it out of etcd. One that does not run cannot. On a machine
// whose EPHEMERAL is broken there is no such service.
func leavesByItself(have Snapshot, s step.MachineState) bool {
	return !s.EtcdDown() && mayVote(have, s)
}

// removalInHand names the control plane whose removal is in progress.
func removalInHand(want Spec, have Snapshot, p Policy) string {
	for _, m := range want.removed(step.ControlPlane) {
		if s := have.Machines[m.Name]; s.Busy != "" || s.Resetting && !departed(want, have, m, p) {
			return m.Name
		}
	}

	return ""
}

// planDeparture makes a control plane leave etcd, unless the others need it.
func planDeparture(want Spec, have Snapshot, m Machine, p Policy, d *Decision) {
	member, _ := memberOfRemoved(want, have, m)

	q := quorumOf(want, have)

	// Of two members neither can be lost for a change, so the leaving one goes first.
	if other := d.otherChanging(want, have, m.Name, len(q.Votes) == 2); other != "" {
		d.hold(m.Name, "is removed after %s is done", other)

		return
	}

	if reason := staysInEtcd(want, have, m, member.ID); reason != "" {
		d.hold(m.Name, "stays in etcd for now: %s", reason)

		return
	}

	if !leavesByItself(have, have.Machines[m.Name]) {
		planExpulsion(want, have, m, member, d)

		return
	}

	d.step(step.LeaveEtcd{Machine: m.Name, Member: member.ID, Evacuation: lastEvacuation(have, m, p)})
}

// lastEvacuation is how a machine is taken out of service that leaves.
func lastEvacuation(have Snapshot, m Machine, p Policy) step.Evacuation {
	p.Drain.Skip = p.Drain.Skip || m.Reset.Abrupt

	return EvacuationOf(have, m, p)
}

// otherChanging names another control plane that has a step or a hold, because membership changes come last and one
// at a time. Urgent ones wait only for steps.
func (d *Decision) otherChanging(want Spec, have Snapshot, machine string, urgent bool) string {
	for _, m := range slices.Concat(want.sorted(step.ControlPlane), want.removed(step.ControlPlane)) {
		busy := have.Machines[m.Name].Busy != "" || d.steps(m.Name)
		if m.Name != machine && (busy || !urgent && d.concerns(m.Name)) {
			return m.Name
		}
	}

	return ""
}

// planWorkerRemoval resets a worker within the budget of its pool, and then deletes its node. mustStay is why no
// worker may go out of service now, and blind the worker from keyPlan.blindWorker.
func planWorkerRemoval(want Spec, have Snapshot, m Machine, p Policy, b *budget, mustStay, blind string, d *Decision) {
	s := have.Machines[m.Name]

	switch {
	case d.concerns(m.Name), d.leaving(have, m, p):
	case departed(want, have, m, p):
		planRemains(want, have, m, d)
	case s.Access != step.Member:
		d.hold(m.Name, "is not removed yet: %s", unanswered(want, have, m))
	case !have.Kubernetes.Reachable:
		d.hold(m.Name, "is removed after the Kubernetes API responds%s", Because(have.Kubernetes.Cause))
	case blind != "":
		// The reset would hold the lock, which control planes need for the move after which their nodes report keys.
		d.hold(m.Name, "is not removed until %s can join", blind)
	case mustStay != "": // Preflight would call the reset off after each drain
		d.hold(m.Name, "is not removed yet: %s", mustStay)
	case !b.take(m.Name):
		d.hold(m.Name, "is not removed yet: %s", b)
	default:
		reset := m.resetStep()
		reset.Evacuation = lastEvacuation(have, m, p)
		d.step(reset)
	}
}

// planRemains removes what is left of a machine that is out of the cluster: its pod, and the node.
func planRemains(want Spec, have Snapshot, m Machine, d *Decision) {
	access := have.Machines[m.Name].Access
	node, ok := nodeOfRemoved(want, have, m)

	switch {
	case m.Platform().Deleted && (access == step.Maintenance || access == step.Unreachable):
		d.step(step.Reset{Machine: m.Name, Role: m.Role, Container: true})
	case !have.Kubernetes.Reachable:
		d.hold(m.Name, "its node is deleted after the Kubernetes API responds%s", Because(have.Kubernetes.Cause))
	case ok:
		d.step(step.DeleteNode{Machine: m.Name, Node: node.Name})
	}
}

// refuseLastRemoval refuses to remove the last control plane of a cluster, even where another one waits for its name.
func refuseLastRemoval(want Spec, have Snapshot, d *Decision) {
	removed := want.removed(step.ControlPlane)
	if len(removed) == 0 || !have.Etcd.Known || len(want.sorted(step.ControlPlane)) > 0 {
		return
	}

	leaving := map[string]bool{}

	for _, m := range removed {
		if member, ok := memberOfRemoved(want, have, m); ok {
			leaving[member.ID] = true
		}
	}

	if len(leaving) == 0 || len(leaving) < len(have.Etcd.Members) {
		return
	}

	if len(want.waiting) > 0 && want.waiting[0].machine.Role == step.ControlPlane {
		first := want.waiting[0]
		d.refuse(first.machine.Name, fmt.Sprintf("its node name would be %s, as for %s, and no healthy control plane "+
			"remains until that machine leaves", first.machine.WantedNode, first.predecessor.Name),
			"Use another hostname, or another key in machines: then it joins before the other machine leaves")

		return
	}

	d.refuse(removed[0].Name, fmt.Sprintf("removing it would leave cluster %q without a control plane",
		want.Name),
		"Keep one control plane, or destroy the whole cluster")
}
