package lifecycle_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// A resource that finds working machines takes them over, and the former owner leaves them alone from then on.
func TestOwnership_goesToTheLastOne(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{})
	s.want.Owner = "first"
	s.converge()

	second := s.want
	second.Owner = "second"

	result, err := s.runner().Converge(bounded(t), second)
	if err != nil {
		t.Fatal(err)
	}

	for _, op := range result.Done {
		if take, is := op.(step.TakeOwnership); !is || take.From != "first" {
			t.Errorf("done beside taking over: %s", op)
		}
	}

	if len(result.Done) != 2 {
		t.Errorf("done: %v", result.Done)
	}

	first := s.want
	first.Bootstrapped = true
	first.Machines = slices.Clone(first.Machines)

	for i := range first.Machines {
		first.Machines[i].OwnedByOther = true // the plan of the destroy observed the marks
	}

	result, err = s.runner().Teardown(bounded(t), first)
	if err != nil || !slices.Equal(result.Relinquished, []string{"cp-1", "w-1"}) || len(result.Done) > 0 {
		t.Errorf("the first owner did %v, left %v to others (%v)", result.Done, result.Relinquished, err)
	}

	if calls := s.sim.CallsTo("Reset"); len(calls) > 0 {
		t.Errorf("reset: %v", calls)
	}
}

// A machine that another resource of the same process took over is not removed, although its node has no mark.
func TestOwnership_claimedInTheProcess(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{})
	s.converge()

	want := s.want
	want.Owner, want.Bootstrapped = "mine", true
	want.Machines, want.Removed = nil, want.Machines[1:]

	runner := s.runner()
	runner.Claimed = func(m cluster.Machine) bool { return m.Name == "w-1" }

	result, err := runner.Remove(bounded(t), want)
	if err != nil || !slices.Equal(result.Relinquished, []string{"w-1"}) || len(s.sim.CallsTo("Reset")) > 0 {
		t.Errorf("done %v, left to others %v: %v", result.Done, result.Relinquished, err)
	}
}

// unwritableLock is a Lease in an API that rejects writes.
type unwritableLock struct{ since time.Time }

func (l unwritableLock) Acquire(ctx context.Context, _ func(string)) (<-chan struct{}, func(), error) {
	<-ctx.Done()

	return nil, nil, context.Cause(ctx)
}

func (l unwritableLock) Held(context.Context) error { return nil }

func (l unwritableLock) FailingSince() time.Time { return l.since }

// The last control plane is removed although its API rejects writes of the lock.
func TestRemoval_ofTheLastWithoutTheLock(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{})
	s.converge()

	want := s.want
	want.Bootstrapped = true
	want.Machines, want.Removed, want.OtherControlPlanes = nil, want.Machines, []cluster.Machine{}

	runner := s.runner()
	runner.Lock = unwritableLock{since: time.Now().Add(-time.Hour)}

	if _, err := runner.Remove(bounded(t), want); err != nil {
		t.Error(err)
	}

	if len(s.sim.CallsTo("Reset")) != 1 {
		t.Error("the control plane was not reset")
	}
}

// busyLock is a lock that another run holds, which does something once it is waited for.
type busyLock struct {
	unwritableLock

	meanwhile func()
}

func (l busyLock) Acquire(ctx context.Context, waiting func(string)) (<-chan struct{}, func(), error) {
	l.meanwhile()

	return l.unwritableLock.Acquire(ctx, waiting)
}

// A control plane that waits for the lock of another removal is the last one after it. That it is the last one is the
// only cause of the refusal.
func TestRemoval_refusedWhileItWaitsForTheLock(t *testing.T) {
	t.Parallel()

	s := newSite(t, 2, 0, sim.Options{})
	s.converge()

	removal := func(of, other int) cluster.Spec {
		want := s.want
		want.Bootstrapped, want.Protected, want.Ending = true, true, true
		want.Removed, want.OtherControlPlanes = want.Machines[of:of+1], want.Machines[other:other+1]
		want.Machines = nil

		return want
	}

	runner := s.runner()
	runner.Lock = busyLock{meanwhile: func() {
		if _, err := s.runner().Remove(bounded(t), removal(1, 0)); err != nil {
			t.Error(err)
		}
	}}

	_, err := runner.Remove(bounded(t), removal(0, 1))

	var stopped *lifecycle.IncompleteError
	if !errors.As(err, &stopped) || !errors.As(err, new(*lifecycle.RefusedError)) {
		t.Fatal(err)
	}

	if len(stopped.Holds) > 0 {
		t.Errorf("it waited for %v", stopped.Holds)
	}
}
