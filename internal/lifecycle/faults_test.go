package lifecycle_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// TestCreateAndTeardown_survivesAFaultAtEveryChange lets every call that changes a machine go wrong, once in
// every way, in a create and in a teardown: the end state is the same, with one bootstrap.
func TestCreateAndTeardown_survivesAFaultAtEveryChange(t *testing.T) {
	t.Parallel()

	creates, teardowns := countChanges(t)

	for n := range max(len(creates), len(teardowns)) {
		for _, way := range disturbances() {
			t.Run(fmt.Sprintf("%s at %d", way.name, n+1), func(t *testing.T) {
				t.Parallel()

				s := newSite(t, 2, 1, sim.Options{})
				s.policy.DeadAfter = deadAfter // etcd without its majority keeps the Kubernetes API silent

				if n < len(creates) {
					way.disturb(s, creates[n], converge)
				}

				s.create()

				if n < len(teardowns) {
					way.disturb(s, teardowns[n], teardown)
				}

				s.teardown()
			})
		}
	}
}

// TestCreateAndTeardown_surviveReadsThatFail lets one read of thirty fail in one way or the other, in no rhythm
// that a step could keep.
func TestCreateAndTeardown_surviveReadsThatFail(t *testing.T) {
	t.Parallel()

	for name, injected := range map[string]fault.Fault{
		"unavailable": {Code: codes.Unavailable, Message: "injected"},
		"cut":         {Cut: true},
		"answer lost": {DropResponse: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := newSite(t, 2, 1, sim.Options{})
			s.timeouts.Settle = impatience

			read := func(c fault.Call) bool { return !c.Mutates() && (uint32(c.Seq)*2654435761)>>16%30 == 0 } //nolint:gosec // a hash

			s.sim.SetOnCall(func(c fault.Call) error { return s.strike(c, read(c), injected) })
			s.create()
			s.teardown()

			if len(s.sim.Calls()) < 20 {
				t.Error("hardly any call was made")
			}
		})
	}
}

// some are points of all of them, at most so many, with one of each method among them; all in make test-all.
func some(points []point, most int) []point {
	if testenv.Everything() || len(points) <= most {
		return points
	}

	var firsts, others []point

	for _, p := range points {
		if slices.ContainsFunc(firsts, func(f point) bool { return f.method == p.method }) {
			others = append(others, p)
		} else {
			firsts = append(firsts, p)
		}
	}

	for i, free := 0, most-len(firsts); i < free; i++ {
		firsts = append(firsts, others[len(others)-1-i*len(others)/free])
	}

	return firsts
}

// inTurn are the ways in which the i-th of the points is disturbed: one of them, each in its turn, or all of them in
// make test-all.
func inTurn[T any](i int, ways []T) []T {
	if testenv.Everything() {
		return ways
	}

	return ways[i%len(ways):][:1]
}

// countChanges lists the calls of an undisturbed create that change machines, and those of its teardown.
func countChanges(t *testing.T) (creates, teardowns []point) {
	t.Helper()

	s := newSite(t, 2, 1, sim.Options{})
	s.create()

	creates = s.points()

	s.sim.ForgetCalls()
	s.teardown()

	return creates, s.points()
}

func converge(ctx context.Context, r *lifecycle.Runner, want cluster.Spec) error {
	_, err := r.Converge(ctx, want)

	return err
}

func teardown(ctx context.Context, r *lifecycle.Runner, want cluster.Spec) error {
	_, err := r.Teardown(ctx, want)

	return err
}

// teardown ends a site, and fails when a point that was to be struck was not.
func (s *site) teardown() {
	s.t.Helper()
	defer s.expectStruck()

	if _, err := s.runner().Teardown(bounded(s.t), s.want); err != nil {
		s.t.Fatalf("teardown: %v", err)
	}

	s.isBlank()
}

// strike makes a call fail.
func (s *site) strike(c fault.Call, struck bool, injected fault.Fault) error {
	switch {
	case !struck:
		return nil
	case injected.Code != codes.OK:
		return status.Error(injected.Code, injected.Message)
	default:
		s.sim.Machine(c.Machine).SetFault(injected)

		return nil
	}
}
