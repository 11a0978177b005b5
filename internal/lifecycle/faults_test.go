package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// TestFailAtEveryCall fails the n-th call of a create and of a teardown, for every
// n: the end state is the same, with one bootstrap.
func TestFailAtEveryCall(t *testing.T) {
	t.Parallel()

	total := countCalls(t)
	stride := strideOf(total, failPoints)

	t.Logf("a create makes %d calls, every %d. fails", total, stride)

	for n := 1; n <= total; n += stride {
		for _, way := range inTurn(n/stride, []struct {
			name  string
			fault sim.Fault
		}{
			{"unavailable", sim.Fault{Code: codes.Unavailable, Message: "injected"}},
			{"cut", sim.Fault{Cut: true}},
			{"answer lost", sim.Fault{DropResponse: true}},
		}) {
			t.Run(fmt.Sprintf("%s at %d", way.name, n), func(t *testing.T) {
				t.Parallel()
				failOnce(t, n, way.fault)
			})
		}
	}
}

// failPoints bounds how many calls of a create are made to fail, and everyCall is the
// setting with which all of them are (make testeverycall): that takes an hour.
const (
	failPoints = 10
	everyCall  = "TALOSOP_TEST_EVERY_CALL"
)

// strideOf is the distance between two calls that are made to fail.
func strideOf(total, points int) int {
	if os.Getenv(everyCall) != "" {
		return 1
	}

	return max(1, total/points)
}

// inTurn are the ways in which the i-th of the points is disturbed: one of them, each in its turn, or all of them with
// everyCall.
func inTurn[T any](i int, ways []T) []T {
	if os.Getenv(everyCall) != "" {
		return ways
	}

	return ways[i%len(ways):][:1]
}

func countCalls(t *testing.T) int {
	t.Helper()

	s := newSite(t, 2, 1, sim.Options{})
	s.create()

	return len(s.sim.Calls())
}

func failOnce(t *testing.T, n int, fault sim.Fault) {
	t.Helper()

	s := newSite(t, 2, 1, sim.Options{})

	s.inject(n, fault)
	s.create()
	s.inject(n, fault)

	if _, err := s.runner().Teardown(bounded(t), s.want); err != nil {
		t.Fatalf("teardown: %v", err)
	}

	s.isBlank()
}

// inject makes the n-th call from now on fail.
func (s *site) inject(n int, fault sim.Fault) {
	s.injectAt(n, fault, func(sim.Call) bool { return true })
}

// injectChange makes the n-th call from now on that changes a machine fail.
func (s *site) injectChange(n int, fault sim.Fault) { s.injectAt(n, fault, sim.Call.Mutates) }

func (s *site) injectAt(n int, fault sim.Fault, counts func(sim.Call) bool) {
	var calls atomic.Int64

	s.sim.SetOnCall(func(c sim.Call) error {
		if !counts(c) || calls.Add(1) != int64(n) {
			return nil
		}

		if fault.Code != codes.OK {
			return status.Error(fault.Code, fault.Message)
		}

		s.sim.Machine(c.Machine).SetFault(fault)

		return nil
	})
}

// TestStopAtEveryCall interrupts a create at the n-th call, for every n, as a
// killed process would be: nothing is remembered but what the machines are. A new
// runner finishes.
func TestStopAtEveryCall(t *testing.T) {
	t.Parallel()

	total := countCalls(t)
	stride := strideOf(total, failPoints)

	for n := 1; n <= total; n += stride {
		t.Run(fmt.Sprintf("at %d", n), func(t *testing.T) {
			t.Parallel()

			s := newSite(t, 2, 1, sim.Options{})
			s.stopAt(n, func(ctx context.Context) error { _, err := s.runner().Converge(ctx, s.want); return err })
			s.create()

			s.stopAt(n, func(ctx context.Context) error { _, err := s.runner().Teardown(ctx, s.want); return err })

			if _, err := s.runner().Teardown(bounded(t), s.want); err != nil {
				t.Fatalf("second teardown: %v", err)
			}

			s.isBlank()
		})
	}
}

// stopAt cancels a run at its n-th call; the call itself may take effect.
func (s *site) stopAt(n int, run func(context.Context) error) {
	s.t.Helper()
	s.stopWhen(n, func(sim.Call) bool { return true }, run)
}

// stopAtChange cancels a run at its n-th call that changes a machine.
func (s *site) stopAtChange(n int, run func(context.Context) error) {
	s.t.Helper()
	s.stopWhen(n, sim.Call.Mutates, run)
}

func (s *site) stopWhen(n int, counts func(sim.Call) bool, run func(context.Context) error) {
	s.t.Helper()

	ctx, stop := context.WithCancel(bounded(s.t))

	var calls atomic.Int64

	s.sim.SetOnCall(func(c sim.Call) error {
		if counts(c) && calls.Add(1) == int64(n) {
			stop()
		}

		return nil
	})

	if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		s.t.Fatalf("stopped run: %v", err)
	}

	stop()
	s.sim.SetOnCall(nil)
}
