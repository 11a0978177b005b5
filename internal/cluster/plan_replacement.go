package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// Rejoining is a control plane that a run of this process takes out of the cluster to create it again. It counts until
// its create ends with a machine that is ready.
type Rejoining struct {
	// Name is what messages call it.
	Name string
	// Since is when it was out of the cluster, wiped; zero until then.
	Since time.Time
	// Joins is true once its create has begun. Failed is true when its removal or its create ended with an error.
	Joins, Failed bool
}

// holdRemoval decides whether the control planes in want.Removed have to stay in etcd because of replacements. A
// replacement shrinks etcd only until the machine joins again, so that each removal on its own keeps quorum while all
// of them together end the cluster. The rule:
//
//   - While a control plane rejoins, no other one leaves.
//   - A control plane that is replaced leaves only beside all the others that its cluster is known to have.
//
// The wait is limited, because the create of the other machine may wait for this removal (-parallelism=1). A machine
// without data of etcd leaves at any time. So does the only control plane of a cluster: its protection guards it.
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

// staysForReplacement says why a control plane that is about to leave etcd stays in it because of a replacement.
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

// leavesEtcd reports whether a machine that is removed still is a member of etcd, or may be.
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
		d.refuse(m.Name, fmt.Sprintf("it stays in etcd, because %s was taken out to be replaced and did not join again",
			other.Name), "Apply again, so that the other one joins first")
	case !other.Joins && !other.Since.IsZero() && have.Time.Sub(other.Since) > p.RejoinTimeout:
		d.refuse(m.Name, fmt.Sprintf("it stays in etcd, because %s was taken out to be replaced and nothing began to create "+
			"it within %s", other.Name, short(p.RejoinTimeout)), replaceOneByOne)
	default:
		d.hold(m.Name, "stays in etcd until %s is replaced and has joined again", other.Name)
	}
}

func (d *Decision) awaitMissing(m, other Machine, have Snapshot, p Policy) {
	s := have.Machines[other.Name]
	// The etcd of a machine that runs is on its way, or did not answer just now. A replacement has its own limit.
	runs := s.Access == step.Member && s.Stage == step.StageRunning
	limited := !slices.ContainsFunc(have.Rejoining, func(r Rejoining) bool { return !r.Failed })

	if !runs && limited && !s.Since.IsZero() && have.Time.Sub(s.Since) > p.RejoinTimeout {
		d.refuse(m.Name, fmt.Sprintf("it stays in etcd, because %s is no working member of etcd, and did not become one "+
			"within %s",
			other.Name, short(p.RejoinTimeout)), replaceOneByOne)

		return
	}

	d.hold(m.Name, "stays in etcd until %s is a working member of etcd%s", other.Name, Because(s.Cause))
}

const replaceOneByOne = "Control planes are replaced one at a time: each one joins before the next one leaves. With " +
	"-parallelism=1 the CLIs may destroy the next one first: apply with a higher -parallelism, or replace one " +
	"machine in each apply. Take control planes that are gone for good out of talos_endpoints"

// missingOthers are the other control planes of a cluster, as its handle lists them, that are no working members of
// etcd while one is replaced. An address that leads to no member is none of them where etcd has as many members without
// it: it is another address of one.
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
