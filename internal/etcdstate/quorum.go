package etcdstate

import (
	"fmt"
	"maps"
	"slices"
)

// Quorum is the voting members of etcd, and which of them are healthy.
type Quorum struct {
	// Votes are the machines of the voting members, by member ID. Learners do not vote.
	Votes map[string]string
	// Healthy are the voting members that are observed to work.
	Healthy map[string]bool
}

// Majority is how many members must work in an etcd of this size.
func Majority(size int) int { return size/2 + 1 }

// Down says why a member must not go out of service for a while. It is empty when the other members hold the quorum,
// or when there is no other member.
func (q Quorum) Down(id string) string {
	if _, votes := q.Votes[id]; !votes || len(q.Votes) == 1 {
		return ""
	}

	if others, need := q.healthyBut(id), Majority(len(q.Votes)); others < need {
		return fmt.Sprintf("etcd needs %d of its %d members for quorum, and without it %d would be healthy",
			need, len(q.Votes), others)
	}

	return ""
}

// Without says why a member must not be removed. It is empty when the remaining members hold the quorum of the
// smaller etcd.
func (q Quorum) Without(id string) string {
	left := len(q.Votes)
	if _, votes := q.Votes[id]; votes {
		left--
	}

	switch others := q.healthyBut(id); {
	case left == 0:
		return "it is the last member"
	case others < Majority(left):
		return fmt.Sprintf("the remaining %d members need %d healthy ones for quorum, but only %d are healthy",
			left, Majority(left), others)
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

// Survivor names the machine that receives requests about a member: the first other machine whose member works.
func (q Quorum) Survivor(id string) string {
	for _, other := range slices.Sorted(maps.Keys(q.Healthy)) {
		if other != id {
			return q.Votes[other]
		}
	}

	return ""
}
