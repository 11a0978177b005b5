package etcdstate_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

func TestMajority_ofEachSize(t *testing.T) {
	t.Parallel()

	for size, want := range []int{1, 1, 2, 2, 3, 3, 4, 4} {
		if got := etcdstate.Majority(size); got != want {
			t.Errorf("%d of %d, want %d", got, size, want)
		}
	}
}

// quorum has members a, b, … on machines cp-a, cp-b, …
func quorum(votes, healthy string) etcdstate.Quorum {
	q := etcdstate.Quorum{Votes: map[string]string{}, Healthy: map[string]bool{}}

	for _, id := range votes {
		q.Votes[string(id)] = "cp-" + string(id)
	}

	for _, id := range healthy {
		q.Healthy[string(id)] = true
	}

	return q
}

func TestQuorum_whatMayGo(t *testing.T) {
	t.Parallel()

	const last = "it is the last member"

	for _, test := range []struct{ votes, healthy, id, down, without string }{
		{"a", "a", "a", "", last},
		{"a", "", "b", "", "the remaining 1 members need 1 healthy ones for quorum, but only 0 are healthy"},
		{"ab", "ab", "a", "etcd needs 2 of its 2 members for quorum, and without it 1 would be healthy", ""},
		{"abc", "abc", "a", "", ""},
		{"abc", "bc", "a", "", ""},
		{"abc", "ab", "a", "etcd needs 2 of its 3 members for quorum, and without it 1 would be healthy",
			"the remaining 2 members need 2 healthy ones for quorum, but only 1 are healthy"},
		{"abcde", "abcd", "a", "", ""},
		{"abcde", "abc", "a", "etcd needs 3 of its 5 members for quorum, and without it 2 would be healthy",
			"the remaining 4 members need 3 healthy ones for quorum, but only 2 are healthy"},
		// A learner has no vote. It may go down at any time.
		{"abc", "a", "x", "", "the remaining 3 members need 2 healthy ones for quorum, but only 1 are healthy"},
		{"abc", "ab", "x", "", ""},
	} {
		q := quorum(test.votes, test.healthy)

		if got := q.Down(test.id); got != test.down {
			t.Errorf("%s of %s down, %s healthy: %q, want %q", test.id, test.votes, test.healthy, got, test.down)
		}

		if got := q.Without(test.id); got != test.without {
			t.Errorf("%s of %s removed, %s healthy: %q, want %q", test.id, test.votes, test.healthy, got, test.without)
		}
	}
}

func TestSurvivor_isAnotherHealthyMember(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ healthy, id, want string }{
		{"abc", "a", "cp-b"}, {"abc", "b", "cp-a"}, {"c", "a", "cp-c"}, {"a", "a", ""}, {"", "a", ""},
	} {
		if got := quorum("abc", test.healthy).Survivor(test.id); got != test.want {
			t.Errorf("of %q without %s: %q, want %q", test.healthy, test.id, got, test.want)
		}
	}
}
