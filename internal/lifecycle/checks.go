package lifecycle

import (
	"context"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// checksLast is how long checks that passed are good for: they say how it was, and the observation that follows takes
// its time.
const checksLast = time.Minute

// checkGate asks the checks of the user before a machine goes out of service, and once those that did are back. It is
// used by the loop only.
type checkGate struct {
	checks Checks
	// asking ends with an answer; cancel cuts it off.
	asking   bool
	answered chan error
	cancel   context.CancelFunc
	// passed is when all of them passed last, zero once that was used, and due is whether a machine went out of service
	// since.
	passed time.Time
	due    bool

	mu     sync.Mutex
	reason string // what is waited for
}

func newCheckGate(checks Checks) *checkGate {
	return &checkGate{checks: checks, answered: make(chan error, 1)}
}

// open reports whether a step may begin. Otherwise the checks are asked, and the run decides again once they passed.
func (g *checkGate) open(ctx context.Context, step step.Step, have cluster.Snapshot, tell func(Event)) bool {
	return g.checks == nil || !takesOut(step, have) || g.pass(ctx, tell)
}

// takesOut is whether a step takes a machine out of service that is in it. What is broken already may be the reason
// why a check does not pass, and is mended without it.
func takesOut(op step.Step, have cluster.Snapshot) bool {
	s := have.Machines[op.On()]

	return op.Disrupts() && s.Access == step.Member && s.Stage == step.StageRunning && !s.EtcdDown()
}

// settled reports whether nothing is left to be asked at the end of a run.
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

// holds is what is waited for.
func (g *checkGate) holds() []step.Hold {
	if !g.asking {
		return nil
	}

	return []step.Hold{{Reason: "waits " + g.waiting()}}
}

// take notes the answer. The error of one that did not pass ends the run.
func (g *checkGate) take(err error) error {
	g.asking = false
	g.cancel()

	if err != nil {
		return wait.Permanent(err)
	}

	g.passed, g.due = time.Now(), false

	return nil
}

// used notes that machines go out of service, for which the checks passed: the next ones need another answer.
func (g *checkGate) used() { g.passed, g.due = time.Time{}, true }

// close stops asking, waits until what was asked is cleared away, and tells what came of that.
func (g *checkGate) close(tell func(Event)) {
	if !g.asking {
		return
	}

	g.cancel()

	if err := <-g.answered; err != nil {
		tell(Event{State: Note, Reason: "the health checks were cut off: " + err.Error()})
	}
}
