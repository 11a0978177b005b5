package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

// The recorded state of etcd, where it cannot be asked: whether it still has a quorum.

// refuseLostQuorum refuses to continue when the control planes that kept their data can never form a quorum of etcd
// again.
func refuseLostQuorum(want Spec, have Snapshot, d *Decision) {
	if !hasEtcd(want, have) || have.Etcd.Known || len(want.OtherControlPlanes) > 0 {
		return
	}

	lost, of := quorumLost(want, have.Machines)
	if len(lost) == 0 {
		return
	}

	whole := "control planes"
	if of < len(want.everyControlPlane()) {
		whole = "control planes in etcd"
	}

	d.refuse("", fmt.Sprintf("the data of %d of %d %s is lost%s, so etcd cannot regain quorum",
		len(lost), of, whole, Because(strings.TrimSuffix(lost[0]+": "+have.Machines[lost[0]].Cause, ": "))),
		"Set restore_from to a snapshot of the cluster, or recover the volumes")
}

// quorumLost names the control planes that lost their data, and their total number, when the others can never form a
// quorum and no restore is wanted.
func quorumLost(want Spec, machines map[string]step.MachineState) (lost []string, of int) {
	if !want.OwnsBootstrap() || want.RestoreFrom != "" {
		return nil, 0
	}

	members := votersOnRecord(want, machines)

	for _, m := range members {
		if machines[m.Name].VolumesLost {
			lost = append(lost, m.Name)
		}
	}

	if len(members)-len(lost) >= etcdstate.Majority(len(members)) {
		return nil, 0
	}

	return lost, len(members)
}

// tooFewVoters says that the control planes with etcd data may never form a quorum, and what helps then; empty
// otherwise. Those without data may have left etcd in order, and the others answer late, so this is only a message
// and not a refusal.
func tooFewVoters(want Spec, have Snapshot) string {
	if !want.Bootstrapped || want.RestoreFrom != "" {
		return ""
	}

	var without []string

	voters := votersOnRecord(want, have.Machines)
	for _, m := range voters {
		if s := have.Machines[m.Name]; withoutData(s) {
			without = append(without, m.Name)
		}
	}

	if len(voters)-len(without) >= etcdstate.Majority(len(voters)) {
		return ""
	}

	return fmt.Sprintf("; without etcd data: %s. Unless they left etcd in order, it has lost its quorum for good: then "+
		"restore a snapshot (restore_from), or recreate the cluster", strings.Join(without, ", "))
}

// votersOnRecord are the recorded control planes that etcd counts, where it cannot be asked. One that has not joined
// yet is not part of the quorum. One that started since has joined: without etcd it would be booting (Talos 1.13).
// Those of other resources are not recorded and count. Where no member is recorded at all, every control plane
// counts.
func votersOnRecord(want Spec, machines map[string]step.MachineState) []Machine {
	all := want.everyControlPlane()
	recorded := func(m Machine) bool { return m.Joined || m.MemberID != "" || machines[m.Name].MemberID != "" }

	if !slices.ContainsFunc(all, recorded) {
		return all
	}

	return slices.DeleteFunc(all, func(m Machine) bool {
		s := machines[m.Name]
		beside := slices.ContainsFunc(want.OtherControlPlanes, func(b Machine) bool { return b.Name == m.Name })

		return !recorded(m) && !beside && (s.Access != step.Member || s.Stage != step.StageRunning)
	})
}

// RecordedMembers are the etcd members in the recorded state of a change's control planes.
type RecordedMembers struct {
	// Count is their number, with those that leave.
	Count int
	// Leaving are the removed control planes, and Staying those that stay and work.
	Leaving, Staying []string
	// Lost are the control planes whose data is gone, removed or not.
	Lost []string
}

// LosesAll reports whether the data of etcd goes with those that leave.
func (r RecordedMembers) LosesAll() bool { return len(r.Leaving) > 0 && len(r.Staying) == 0 }

// LosesQuorum reports whether less than a majority is left to remove members and to add others.
func (r RecordedMembers) LosesQuorum() bool { return r.Count-len(r.Lost) < etcdstate.Majority(r.Count) }

// MembersOnRecord sorts the control planes of a change by their recorded state. Removing many machines at once loses
// no quorum, because they leave one by one.
func MembersOnRecord(want Spec, recorded map[string]step.MachineState) RecordedMembers {
	var r RecordedMembers

	for _, m := range OfRole(want.Removed, step.ControlPlane) {
		r.Leaving = append(r.Leaving, m.Name)

		s := recorded[m.Name]
		if s.Access == step.Foreign || (s.Access == step.Maintenance || s.VolumesLost) && m.MemberID != "" {
			r.Lost = append(r.Lost, m.Name)
		}
	}

	r.Count = len(r.Leaving)

	for _, m := range OfRole(want.Machines, step.ControlPlane) {
		switch {
		case recorded[m.Name].Access == step.Member:
			r.Staying = append(r.Staying, m.Name)
			r.Count++
		case m.Joined:
			r.Lost = append(r.Lost, m.Name)
			r.Count++
		}
	}

	return r
}
