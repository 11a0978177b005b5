package etcdstate

import (
	"fmt"
	"maps"
	"slices"
)

// Quorum is what etcd can spare: its voting members, and which of them work.
type Quorum struct {
	// Votes are the IDs of the members that vote, with the name of the machine each is
	// on; learners do not vote.
	Votes map[string]string
	// Healthy are those of them that work, as far as anybody can see.
	Healthy map[string]bool
}

// Majority is how many members have to work in an etcd of that size.
func Majority(size int) int { return size/2 + 1 }

// Down says why a member may not go out of service for a while; empty when the others
// hold the quorum meanwhile, or when it is the only one.
func (q Quorum) Down(id string) string {
	if _, votes := q.Votes[id]; !votes || len(q.Votes) == 1 {
		return ""
	}

	if others, need := q.healthyBut(id), Majority(len(q.Votes)); others < need {
		return fmt.Sprintf("etcd needs %d of its %d members, and without it %d would work", need, len(q.Votes), others)
	}

	return ""
}

// Without says why a member may not be removed; empty when those that are left hold the
// quorum of the smaller etcd.
func (q Quorum) Without(id string) string {
	left := len(q.Votes)
	if _, votes := q.Votes[id]; votes {
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

func (q Quorum) healthyBut(id string) int {
	n := len(q.Healthy)
	if q.Healthy[id] {
		n--
	}

	return n
}

// Survivor names the machine that is asked to do something about a member: the first other one that works.
func (q Quorum) Survivor(id string) string {
	for _, other := range slices.Sorted(maps.Keys(q.Healthy)) {
		if other != id {
			return q.Votes[other]
		}
	}

	return ""
}
