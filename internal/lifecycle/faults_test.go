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

// TestCreateAndTeardown_survivesAFaultAtEveryChange fails every call that changes a machine, once in every way, in a
// create and in a teardown. The end state is the same, with one bootstrap.
func TestCreateAndTeardown_survivesAFaultAtEveryChange(t *testing.T) {
	t.Parallel()

	creates, teardowns := countChanges(t)

	for n := range max(len(creates), len(teardowns)) {
		for _, disturbance := range disturbances() {
			t.Run(fmt.Sprintf("%s at %d", disturbance.name, n+1), func(t *testing.T) {
				t.Parallel()

				s := newSite(t, 2, 1, sim.Options{})
				s.policy.DeadAfter = deadAfter // the Kubernetes API is silent while etcd has no majority

				if n < len(creates) {
					disturbance.disturb(s, creates[n], converge)
				}

				s.create()

				if n < len(teardowns) {
					disturbance.disturb(s, teardowns[n], teardown)
				}

				s.teardown()
			})
		}
	}
}

// TestCreateAndTeardown_surviveReadsThatFail fails one of thirty reads in different ways, and not periodically.
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

// some are at most this many points, with one of each method; all points in make test-all.
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

// inTurn are the ways in which the i-th point is disturbed: one of them in turn, or all in make test-all.
func inTurn[T any](i int, all []T) []T {
	if testenv.Everything() {
		return all
	}

	return all[i%len(all):][:1]
}

// countChanges lists the calls that change machines in an undisturbed create and in its teardown.
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

// teardown ends a site, and fails if a requested point was not struck.
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
