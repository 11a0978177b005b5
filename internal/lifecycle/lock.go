package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// ErrLockLost means that another run took over the lock.
var ErrLockLost = errors.New("another run took over the lock of this cluster")

// leaseGate is the lock as one run uses it: acquired when the first disruptive step is due, and held until the run
// ends.
type leaseGate struct {
	lock     Lock
	waiting  bool
	acquired chan acquisition
	lost     <-chan struct{}
	release  func()
	cancel   context.CancelCauseFunc
}

type acquisition struct {
	lost    <-chan struct{}
	release func()
	err     error
}

func newLeaseGate(lock Lock) *leaseGate {
	return &leaseGate{lock: lock, acquired: make(chan acquisition, 1)}
}

// held reports whether this run has the lock, as far as it knows.
func (t *leaseGate) held() bool { return t.lock == nil || t.release != nil }

// open reports whether disruptive steps may begin. Otherwise it requests the lock. When the run has it, it decides
// again with a new observation, because others may have changed the cluster.
func (t *leaseGate) open(ctx context.Context, tell func(Event)) bool {
	if t.held() {
		return true
	}

	if t.waiting {
		return false
	}

	t.waiting = true
	ctx, t.cancel = context.WithCancelCause(ctx)

	go func() {
		var a acquisition

		a.err = finally(func() (err error) {
			a.lost, a.release, err = t.lock.Acquire(ctx, func(holder string) {
				tell(Event{State: Waiting, Reason: "for the lock of the cluster, held by " + holder})
			})

			return err
		})
		t.acquired <- a
	}()

	return false
}

// unwritable reports whether the lock could not be acquired for a while although it has no holder, as in an API that
// reads and does not write.
func (t *leaseGate) unwritable(after time.Duration) bool {
	if !t.waiting {
		return false
	}

	since := t.lock.FailingSince()

	return !since.IsZero() && time.Since(since) > after
}

// take records that the lock was acquired, or could not be.
func (t *leaseGate) take(a acquisition) error {
	t.waiting = false

	if a.err != nil {
		return fmt.Errorf("wait for the lock of the cluster: %w", a.err)
	}

	t.lost, t.release = a.lost, a.release

	return nil
}

// guarded confirms the lock before a disruptive step.
func (t *leaseGate) guarded(ctx context.Context) error {
	if t.lock == nil || t.release == nil {
		return nil
	}

	if err := t.lock.Held(ctx); err != nil {
		return fmt.Errorf("confirm the lock of the cluster: %w", err)
	}

	return nil
}

// giveBack releases the lock for others when no disruption is due for now.
func (t *leaseGate) giveBack() {
	if t.release == nil {
		return
	}

	t.release()
	t.cancel(nil)

	t.release, t.lost, t.cancel = nil, nil, nil
}

// errRunEnds ends the wait for the lock.
var errRunEnds = errors.New("the run is ending")

// stopWaiting stops the wait for the lock and reports the holder; nil where the run does not wait.
func (t *leaseGate) stopWaiting() error {
	if !t.waiting {
		return nil
	}

	t.cancel(errRunEnds)

	a := <-t.acquired
	if a.err == nil {
		a.release()
	}

	t.waiting = false

	return a.err
}

// holds names the holder of the lock that an ending run waited for.
func (t *leaseGate) holds() []step.Hold {
	err := t.stopWaiting()
	if err == nil {
		return nil
	}

	return []step.Hold{{Reason: err.Error()}}
}

// close releases the lock, or stops the wait for it.
func (t *leaseGate) close() {
	_ = t.stopWaiting() // the run has its own error

	if t.cancel != nil {
		t.cancel(nil)
	}

	t.giveBack()
}

// locked reports whether a step needs the lock. Three cases do not: a machine without running etcd while there is no
// API to hold the lock; the only control plane, whose API no other machine can restore; and a step that disrupts
// nothing.
func locked(op step.Step, have cluster.Snapshot) bool {
	if have.Machines[op.On()].Access == step.Maintenance && op.Disrupts() {
		return false // no workload uses a blank pod
	}

	if !op.Disrupts() {
		return have.Kubernetes.Reachable && op.OneByOne()
	}

	if have.Kubernetes.Reachable {
		return true
	}

	alone := have.Etcd.Known && len(have.Etcd.Members) == 1

	return !alone && !have.Machines[op.On()].EtcdDown()
}
