package cluster

import (
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// holdRemoval decides whether the control planes in want.Removed must stay in etcd because of replacements. A
// replacement shrinks etcd only until the machine joins again, so each removal alone keeps quorum while all of them
// together end the cluster. The rule:
//
//   - While a control plane rejoins, no other one leaves.
//   - A control plane that is replaced leaves only while all other known control planes of its cluster are in etcd.
//
// The wait is limited, because the create of the other machine may wait for this removal (-parallelism=1). A machine
// without etcd data leaves at any time. So does the only control plane of a cluster, which is guarded by its
// protection.
func holdRemoval(want Spec, have Snapshot, p Policy) Decision {
	var d Decision

	for _, m := range want.removed(step.ControlPlane) {
		if !leavesEtcd(want, have, m) {
			continue
		}

		for _, other := range have.Rejoining {
			d.awaitRejoining(m, other, have, p)
		}

		for _, other := range missingOthers(want, have) {
			d.awaitMissing(m, other, have, p)
		}
	}

	if len(d.Refusals) > 0 {
		d.Holds = nil
	}

	// The run of the machine that joins may need the lock.
	d.Yields = len(d.Holds) > 0

	return d
}

// staysForReplacement says why a control plane that is about to leave etcd stays because of a replacement.
func staysForReplacement(want Spec, have Snapshot, p Policy) string {
	switch d := holdRemoval(want, have, p); {
	case len(d.Refusals) > 0:
		return d.Refusals[0].Reason
	case len(d.Holds) > 0:
		return d.Holds[0].Reason
	default:
		return ""
	}
}

// leavesEtcd reports whether a removed machine is, or may be, a member of etcd.
func leavesEtcd(want Spec, have Snapshot, m Machine) bool {
	if have.Etcd.Known {
		_, member := memberOfRemoved(want, have, m)

		return member
	}

	return mayHoldEtcd(have.Machines[m.Name]) != ""
}

func (d *Decision) awaitRejoining(m Machine, other Rejoining, have Snapshot, p Policy) {
	switch {
	case other.Failed:
		d.refuse(m.Name, fmt.Sprintf("it stays in etcd, because %s left for its replacement and did not join again",
			other.Name), "Apply again, so that the other machine joins first")
	case !other.Joins && !other.Since.IsZero() && have.Time.Sub(other.Since) > p.RejoinTimeout:
		d.refuse(m.Name, fmt.Sprintf("it stays in etcd, because %s left for its replacement, and no create of it started "+
			"within %s", other.Name, step.Short(p.RejoinTimeout)), replaceOneByOne)
	default:
		d.hold(m.Name, "stays in etcd until %s is replaced and has joined again", other.Name)
	}
}

func (d *Decision) awaitMissing(m, other Machine, have Snapshot, p Policy) {
	s := have.Machines[other.Name]
	// The etcd of a running machine is starting, or just did not answer. A replacement has its own limit.
	runs := s.Access == step.Member && s.Stage == step.StageRunning
	limited := !slices.ContainsFunc(have.Rejoining, func(r Rejoining) bool { return !r.Failed })

	if !runs && limited && !s.Since.IsZero() && have.Time.Sub(s.Since) > p.RejoinTimeout {
		d.refuse(m.Name, fmt.Sprintf("it stays in etcd, because %s did not become a healthy etcd member within %s",
			other.Name, step.Short(p.RejoinTimeout)), replaceOneByOne)

		return
	}

	d.hold(m.Name, "stays in etcd until %s is a healthy etcd member%s", other.Name, Because(s.Cause))
}

const replaceOneByOne = "Control planes are replaced one at a time: each one joins before the next one leaves. With " +
	"-parallelism=1 the CLIs may destroy the next one first: apply with a higher -parallelism, or replace one " +
	"machine in each apply. Remove control planes that no longer exist from talos_endpoints"

// missingOthers are the other control planes in the handle that are not working members of etcd during a replacement.
// An address without a member does not count if etcd has as many members without it: it is another address of one.
func missingOthers(want Spec, have Snapshot) []Machine {
	if !want.Replaced {
		return nil
	}

	q := quorumOf(want, have)
	healthy := len(q.Healthy)

	for _, m := range want.removed(step.ControlPlane) {
		if own, ok := memberOfRemoved(want, have, m); ok && q.Healthy[own.ID] {
			healthy--
		}
	}

	if have.Etcd.Known && healthy >= len(want.OtherControlPlanes) {
		return nil
	}

	return slices.DeleteFunc(slices.Clone(want.OtherControlPlanes), func(m Machine) bool {
		member, ok := have.MemberOf(m)

		return ok && have.Etcd.Known && q.Healthy[member.ID]
	})
}
