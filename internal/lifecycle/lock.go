package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// ErrLockLost means that another run took over the right to disrupt machines.
var ErrLockLost = errors.New("another run took over the lock of this cluster")

// leaseGate is the lock as one run uses it: asked for when the first disruptive step is
// due, and kept until the run ends.
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

// open reports whether disruptive steps may begin. Otherwise it asks for the lock and
// the run decides again, with a new observation, when it has it: others may have changed
// the cluster meanwhile.
func (t *leaseGate) open(ctx context.Context, tell func(Event)) bool {
	if t.lock == nil || t.release != nil {
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
				tell(Event{State: Waiting, Reason: "for the lock of the cluster, which " + holder + " has"})
			})

			return err
		})
		t.acquired <- a
	}()

	return false
}

// unwritable reports whether the lock could not be taken for a while although nobody holds it, as in an API that reads
// and does not write.
func (t *leaseGate) unwritable(after time.Duration) bool {
	if !t.waiting {
		return false
	}

	since := t.lock.FailingSince()

	return !since.IsZero() && time.Since(since) > after
}

// take notes that the lock was acquired, or could not be.
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

// giveBack lets others go first when nothing more is going to be disrupted for now.
func (t *leaseGate) giveBack() {
	if t.release == nil {
		return
	}

	t.release()
	t.cancel(nil)

	t.release, t.lost, t.cancel = nil, nil, nil
}

// errRunEnds ends the wait for the lock.
var errRunEnds = errors.New("the run ends")

// stopWaiting stops to wait for the lock, and says who holds it; nil where the run does not wait for it.
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

// holds says who holds the lock that a run waits for which ends.
func (t *leaseGate) holds() []step.Hold {
	err := t.stopWaiting()
	if err == nil {
		return nil
	}

	return []step.Hold{{Reason: err.Error()}}
}

// close gives the lock back, or stops waiting for it.
func (t *leaseGate) close() {
	_ = t.stopWaiting() // the run has its own error

	if t.cancel != nil {
		t.cancel(nil)
	}

	t.giveBack()
}

// locked reports whether a step needs the lock. A machine whose own etcd does not run
// may be repaired without it while there is no API to hold it in, and so may the only
// control plane, whose API nobody else can bring back, and any with a step that disrupts
// nothing.
func locked(op step.Step, have cluster.Snapshot) bool {
	if have.Machines[op.On()].Access == step.Maintenance && op.Disrupts() {
		return false // a blank pod is in nobody's service
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
