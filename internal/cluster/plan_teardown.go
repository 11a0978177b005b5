package cluster

import (
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// PlanTeardown decides how machines are taken out of service: workers first, then all control planes except one, then
// the last. Every machine ends in maintenance mode, and nothing is left of pods.
//
// A machine that answers to another CA, or that another resource owns ([OwnedByOther]), is never reset. A silent one
// is given up after Policy.DeadAfter, or Policy.ResetTimeout where it accepted its reset: [TeardownLeft] names it,
// and the others are finished. A silent pod is still deleted, because the host cluster identifies it by its marks.
func PlanTeardown(want Spec, have Snapshot, p Policy) Decision {
	var d Decision

	want = want.Ordered()

	if refuseNewOwners(want.going(), have, &d); len(d.Refusals) > 0 {
		return d
	}

	want = want.withoutOthersOf(have)

	if refuseLockedRemoval(want.Machines, &d); len(d.Refusals) > 0 {
		return d
	}

	if held := holdUntilOwned(want, have, p); !held.Done() {
		return held
	}

	for _, m := range want.sorted(step.Worker) {
		planReset(m, have, p, false, &d)
		planNodeRemoval(m, have, p, &d)
	}

	if len(d.Steps) > 0 || len(d.Holds) > 0 {
		return d
	}

	alive := livingControlPlanes(want, have, p)
	for i := len(alive) - 1; i > 0; i-- {
		planReset(alive[i], have, p, false, &d)
	}

	if len(d.Steps) == 0 && len(d.Holds) == 0 && len(alive) > 0 {
		planReset(alive[0], have, p, true, &d)
	}

	return d
}

// livingControlPlanes are the control planes that still have to be reset or that are being reset, with the last one
// first.
func livingControlPlanes(want Spec, have Snapshot, p Policy) []Machine {
	var alive []Machine

	for _, m := range want.sorted(step.ControlPlane) {
		s := have.Machines[m.Name]
		if !m.ended(s) && TeardownLeft(m, have, p) == "" {
			alive = append(alive, m)
		}
	}

	return alive
}

func planReset(m Machine, have Snapshot, p Policy, last bool, d *Decision) {
	s := have.Machines[m.Name]

	switch {
	case m.ended(s), TeardownLeft(m, have, p) != "":
	case s.Busy != "":
		d.hold(m.Name, "%s", s.Busy)
	case s.Resetting:
		d.hold(m.Name, "%s%s", m.stillResetting(), Because(s.Cause))
	case m.Platform().Deleted && s.Access != step.Unobserved:
		d.step(step.Reset{Machine: m.Name, Role: m.Role, Last: last, Container: true})
	case s.Access == step.Member && m.Role == step.Worker && !p.KeepNodes && !p.Drain.Skip && !m.Reset.Abrupt &&
		!have.Kubernetes.Reachable && !kubernetesSilent(have, p):
		d.hold(m.Name, "is drained and reset after the Kubernetes API responds, or reset after %s without a response%s",
			p.DeadAfter,
			Because(have.Kubernetes.Cause))
	case s.Access == step.Member:
		reset := m.resetStep()
		reset.Last = last
		// A draining reset needs the API of a cluster that lives on. Talos itself drains then, and continues when that
		// fails (Talos 1.13, sequence Reset).
		reset.Graceful = m.Role == step.Worker && !p.KeepNodes && !p.Drain.Skip && !m.Reset.Abrupt &&
			have.Kubernetes.Reachable
		d.step(reset)
	case m.hidesHardware(s):
		d.hold(m.Name, "waits in maintenance mode at %s and does not report its hardware UUID yet", m.Address)
	default:
		d.hold(m.Name, "no response from %s%s", m.Address, Because(s.Cause))
	}
}

// planNodeRemoval deletes the node of a worker that left.
func planNodeRemoval(m Machine, have Snapshot, p Policy, d *Decision) {
	s := have.Machines[m.Name]
	left := m.ended(s) || AwayAfterReset(m, have, p)

	if p.KeepNodes || !left || s.Busy != "" || !have.Kubernetes.Reachable {
		return
	}

	if node, ok := have.NodeOf(m); ok {
		d.step(step.DeleteNode{Machine: m.Name, Node: node.Name})
	}
}

// TeardownLeft says why a teardown leaves a machine as it is; empty when it does not.
func TeardownLeft(m Machine, have Snapshot, p Policy) string {
	s := have.Machines[m.Name]

	switch {
	case s.Busy != "", m.wentAway(s):
		return ""
	case s.Access == step.Foreign:
		return "responds, but not as a machine of this cluster" + Because(s.Cause)
	case s.Access == step.Member && m.isOther(s):
		return fmt.Sprintf("responds as another machine: its UUID is %s, expected %s", s.UUID, m.UUID)
	case m.isOtherNode(s):
		return fmt.Sprintf("responds as another node: %s, expected %s", s.NodeName, m.NodeName)
	case m.hasOtherRole(s):
		return fmt.Sprintf("responds as a %s, expected a %s", s.Role, m.Role)
	case AwayAfterReset(m, have, p):
		return "was reset and did not come back within " + step.Short(p.ResetTimeout) + Because(s.Cause)
	case s.Access == step.Unreachable && s.Resetting && have.Time.Sub(s.Since) > p.DeleteTimeout:
		return "was deleted but still exists" + Because(s.Cause)
	case m.hidesHardware(s) && silentFor(have, m, p):
		return "waits in maintenance mode and reports no hardware UUID, expected " + m.UUID
	case !m.Platform().Deleted && silentFor(have, m, p):
		return "does not respond" + Because(s.Cause)
	default:
		return ""
	}
}

// AwayAfterReset is true for a machine that accepted its reset and has been silent for longer than
// Policy.ResetTimeout. It may only be slow to boot, and nothing is left to do. A pod must be gone. One that is meant to
// stay away is fully reset instead.
func AwayAfterReset(m Machine, have Snapshot, p Policy) bool {
	s := have.Machines[m.Name]

	return !m.Platform().Deleted && !m.Reset.StaysAway() && s.Access == step.Unreachable && s.Resetting && s.Busy == "" &&
		have.Time.Sub(s.Since) > p.ResetTimeout
}

// silentFor is true for a machine that has been silent for long enough to count as dead. That includes one at whose
// address another machine may be.
func silentFor(have Snapshot, m Machine, p Policy) bool {
	s := have.Machines[m.Name]

	silent := s.Access == step.Unreachable || m.hidesHardware(s)

	return silent && s.Busy == "" && !s.Resetting && have.Time.Sub(s.Since) > p.DeadAfter
}
