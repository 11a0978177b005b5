package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// quorum is what etcd can spare: its voting members, and which of them work.
type quorum struct {
	// votes are the IDs of the members that vote, with the name of the machine each is
	// on; learners do not vote.
	votes map[string]string
	// healthy are those of them that work, as far as anybody can see.
	healthy map[string]bool
}

// quorumOf counts the members. One works when its machine answers, runs, and has a view
// of etcd with a leader and without errors. Where nobody was asked for views, as in a
// forecast, running is enough.
func quorumOf(want Spec, have Snapshot) quorum {
	q := quorum{votes: map[string]string{}, healthy: map[string]bool{}}

	for _, member := range have.Etcd.Members {
		if member.Learner {
			continue
		}

		machine, state := ownerOf(want, have, member)
		q.votes[member.ID] = machine

		view, asked := have.Etcd.Views[member.ID]
		sees := have.Etcd.Views == nil || asked && view.Leader != "" && len(view.Errors) == 0

		if state.Access == Member && state.Stage == StageRunning && sees {
			q.healthy[member.ID] = true
		}
	}

	return q
}

// ownerOf finds the machine that a member is on: one of the spec's, or a peer.
func ownerOf(want Spec, have Snapshot, member EtcdMember) (string, MachineState) {
	for _, m := range want.sorted(ControlPlane) {
		if found, ok := have.MemberOf(m); ok && found.ID == member.ID {
			return m.Name, have.Machines[m.Name]
		}
	}

	for _, m := range want.removed(ControlPlane) {
		if found, ok := memberOfRemoved(want, have, m); ok && found.ID == member.ID {
			return m.Name, have.Machines[m.Name]
		}
	}

	for _, m := range want.OtherControlPlanes {
		if found, ok := have.MemberOf(m); ok && found.ID == member.ID {
			return m.Name, have.Machines[m.Name]
		}
	}

	return PeerName(member), have.Peers[member.ID]
}

// Unowned lists the members whose machines the spec does not know.
func Unowned(want Spec, have Snapshot) []EtcdMember {
	var peers []EtcdMember

	want = want.ordered()

	for _, member := range have.Etcd.Members {
		if name, _ := ownerOf(want, have, member); name == PeerName(member) {
			peers = append(peers, member)
		}
	}

	return peers
}

// PeerName names a control plane that the spec does not own.
func PeerName(member EtcdMember) string { return "peer/" + member.NameOrID() }

// leaving names a machine with a vote that is to be removed and can do so.
func (q quorum) leaving(want Spec, have Snapshot) string {
	for _, m := range want.removed(ControlPlane) {
		if member, ok := memberOfRemoved(want, have, m); ok && q.healthy[member.ID] {
			return m.Name
		}
	}

	return ""
}

// Majority is how many members have to work in an etcd of that size.
func Majority(size int) int { return size/2 + 1 }

// down says why a member may not go out of service for a while; empty when the others
// hold the quorum meanwhile, or when it is the only one.
func (q quorum) down(id string) string {
	if _, votes := q.votes[id]; !votes || len(q.votes) == 1 {
		return ""
	}

	if others, need := q.healthyBut(id), Majority(len(q.votes)); others < need {
		return fmt.Sprintf("etcd needs %d of its %d members, and without it %d would work", need, len(q.votes), others)
	}

	return ""
}

// without says why a member may not be removed; empty when those that are left hold the
// quorum of the smaller etcd.
func (q quorum) without(id string) string {
	left := len(q.votes)
	if _, votes := q.votes[id]; votes {
		left--
	}

	switch others := q.healthyBut(id); {
	case left == 0:
		return "it is the last one"
	case others < Majority(left):
		return fmt.Sprintf("of the %d members that would be left %d have to work, and %d do", left, Majority(left), others)
	default:
		return ""
	}
}

func (q quorum) healthyBut(id string) int {
	n := len(q.healthy)
	if q.healthy[id] {
		n--
	}

	return n
}

// survivor names the machine that is asked to remove a member: the first that works.
func (q quorum) survivor(id string) string {
	for _, other := range slices.Sorted(maps.Keys(q.healthy)) {
		if other != id {
			return q.votes[other]
		}
	}

	return ""
}

// discordBut is discord for a member that leaves: an alarm of its own goes with it.
func discordBut(have Snapshot, leaving string) string {
	views := map[string]EtcdView{}

	for id, view := range have.Etcd.Views {
		view.Alarms = slices.DeleteFunc(slices.Clone(view.Alarms),
			func(alarm string) bool { return strings.HasSuffix(alarm, " on "+leaving) })
		views[id] = view
	}

	if have.Etcd.Views != nil {
		have.Etcd.Views = views
	}

	return discord(have, leaving)
}

// discord says what is wrong with etcd as its members see it: alarms, no leader, or
// members that disagree; empty when nothing is, or when nobody was asked.
//
// but is the member of a machine that is to go out of service: it may be the one that
// has trouble.
func discord(have Snapshot, but string) string {
	var leader, members, first string

	for _, member := range have.Etcd.Members {
		if _, answers := have.Etcd.Views[member.ID]; have.Etcd.Views != nil && !answers && member.ID != but {
			return fmt.Sprintf("etcd member %s of %s does not say how it is", member.ID, member.NameOrID())
		}
	}

	for _, id := range slices.Sorted(maps.Keys(have.Etcd.Views)) {
		if id == but {
			continue
		}

		v := have.Etcd.Views[id]
		list := strings.Join(v.Members, ",")

		switch {
		case len(v.Alarms) > 0:
			return "etcd has an alarm: " + strings.Join(v.Alarms, ", ")
		case len(v.Errors) > 0:
			return fmt.Sprintf("etcd member %s reports: %s", id, strings.Join(v.Errors, ", "))
		case v.Leader == "":
			return fmt.Sprintf("etcd member %s knows no leader", id)
		case first == "":
			leader, members, first = v.Leader, list, id
		case v.Leader != leader:
			return fmt.Sprintf("etcd members %s and %s follow different leaders", first, id)
		case list != members:
			return fmt.Sprintf("etcd members %s and %s know different members", first, id)
		}
	}

	return ""
}
