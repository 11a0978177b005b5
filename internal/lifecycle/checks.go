package lifecycle

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// checksLast is how long passed checks stay valid. They describe an earlier moment, and the observation that follows
// takes time.
const checksLast = time.Minute

// checkGate runs the user's checks before a machine goes out of service, and once it is back. Only the loop uses it.
type checkGate struct {
	checks Checks
	// asking is true while the checks run; cancel ends them.
	asking   bool
	answered chan error
	cancel   context.CancelFunc
	// passed is when all checks passed last; zero once that result was used. due is true when a machine went out of
	// service since.
	passed time.Time
	due    bool

	mu     sync.Mutex
	reason string // why the run waits
}

func newCheckGate(checks Checks) *checkGate {
	return &checkGate{checks: checks, answered: make(chan error, 1)}
}

// open reports whether a working machine may go out of service. Otherwise it runs the checks, and the run decides again
// when they passed.
func (g *checkGate) open(ctx context.Context, tell func(Event)) bool {
	return g.checks == nil || g.pass(ctx, tell)
}

// takesOut reports whether a step takes a working machine out of service. A broken machine may be why a check or a hook
// fails, so it is repaired without them.
func takesOut(op step.Step, have cluster.Snapshot) bool {
	s := have.Machines[op.On()]

	return op.Disrupts() && s.Access == step.Member && s.Stage == step.StageRunning && !s.EtcdDown()
}

// settled reports whether no check is left to run at the end of a run.
func (g *checkGate) settled(ctx context.Context, tell func(Event)) bool {
	return g.checks == nil || !g.due || g.pass(ctx, tell)
}

func (g *checkGate) pass(ctx context.Context, tell func(Event)) bool {
	if !g.passed.IsZero() && time.Since(g.passed) < checksLast {
		return true
	}

	if g.asking {
		tell(Event{State: Waiting, Reason: g.waiting()})

		return false
	}

	g.asking = true
	ctx, g.cancel = context.WithCancel(ctx)

	g.wait("for the health checks")

	go func() {
		g.answered <- finally(func() error { return g.checks.Pass(ctx, g.wait) })
	}()

	return false
}

func (g *checkGate) wait(reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.reason = reason
}

func (g *checkGate) waiting() string {
	g.mu.Lock()
	defer g.mu.Unlock()

	return g.reason
}

// holds is why the run waits.
func (g *checkGate) holds() []step.Hold {
	if !g.asking {
		return nil
	}

	return []step.Hold{{Reason: "waits " + g.waiting()}}
}

// take records the result. A failed check ends the run with its error.
func (g *checkGate) take(err error) error {
	g.asking = false
	g.cancel()

	if err != nil {
		return wait.Permanent(err)
	}

	g.passed, g.due = time.Now(), false

	return nil
}

// used records that machines go out of service, so the next ones need another result.
func (g *checkGate) used() { g.passed, g.due = time.Time{}, true }

// close ends the checks, waits for their cleanup, and reports its result.
func (g *checkGate) close(tell func(Event)) {
	if !g.asking {
		return
	}

	g.cancel()

	if err := <-g.answered; err != nil {
		tell(Event{State: Note, Reason: "the health checks were interrupted: " + err.Error()})
	}
}

// finally does work whose panic becomes an error that ends the run, because a retry would panic again.
func finally(work func() error) error {
	err := panics.Do(work)
	if e := (*panics.Error)(nil); errors.As(err, &e) {
		return wait.Permanent(err)
	}

	return err
}
