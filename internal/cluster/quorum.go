package cluster

import (
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

// quorumOf counts the members. One works when its machine answers, runs, and has a view of etcd with a leader and
// without errors. Where no views were read, as in a forecast, running is enough.
func quorumOf(want Spec, have Snapshot) etcdstate.Quorum {
	q := etcdstate.Quorum{Votes: map[string]string{}, Healthy: map[string]bool{}}

	for _, member := range have.Etcd.Members {
		if member.Learner {
			continue
		}

		machine, state := ownerOf(want, have, member)
		q.Votes[member.ID] = machine

		view, asked := have.Etcd.Views[member.ID]
		sees := have.Etcd.Views == nil || asked && view.Leader != "" && len(view.Errors) == 0

		if state.Access == step.Member && state.Stage == step.StageRunning && sees {
			q.Healthy[member.ID] = true
		}
	}

	return q
}

// Leads reports whether the member of a machine leads etcd, by its own view.
func (s Snapshot) Leads(m Machine) bool {
	member, ok := s.MemberOf(m)

	return ok && s.Etcd.Views[member.ID].Leader == member.ID
}

// ownerOf finds the machine of a member: one of the spec's, or a peer.
func ownerOf(want Spec, have Snapshot, member etcdstate.Member) (string, step.MachineState) {
	for _, m := range want.sorted(step.ControlPlane) {
		if found, ok := have.MemberOf(m); ok && found.ID == member.ID {
			return m.Name, have.Machines[m.Name]
		}
	}

	for _, m := range want.removed(step.ControlPlane) {
		if found, ok := memberOfRemoved(want, have, m); ok && found.ID == member.ID {
			return m.Name, have.Machines[m.Name]
		}
	}

	for _, m := range want.OtherControlPlanes {
		if found, ok := have.MemberOf(m); ok && found.ID == member.ID && !isSuccessor(have, m, member) {
			return m.Name, have.Machines[m.Name]
		}
	}

	return PeerName(member), have.Peers[member.ID]
}

// isSuccessor is true for a member with the node name of another control plane that does not answer, and with a peer
// address elsewhere: that machine may have left, and another one joined under its name. Its own address is asked then.
func isSuccessor(have Snapshot, m Machine, member etcdstate.Member) bool {
	return have.Machines[m.Name].Access != step.Member && len(member.PeerURLs) > 0 && !hasPeerAt(member, m.Address)
}

// Unowned lists the members whose machines are outside the spec.
func Unowned(want Spec, have Snapshot) []etcdstate.Member {
	var peers []etcdstate.Member

	want = want.Ordered()

	for _, member := range have.Etcd.Members {
		if name, _ := ownerOf(want, have, member); name == PeerName(member) {
			peers = append(peers, member)
		}
	}

	return peers
}

// PeerName names a control plane outside the spec.
func PeerName(member etcdstate.Member) string { return "peer/" + member.NameOrID() }

// leavingVoter names a voting machine that will be removed and can leave.
func leavingVoter(q etcdstate.Quorum, want Spec, have Snapshot) string {
	for _, m := range want.removed(step.ControlPlane) {
		if member, ok := memberOfRemoved(want, have, m); ok && q.Healthy[member.ID] {
			return m.Name
		}
	}

	return ""
}
