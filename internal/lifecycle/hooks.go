package lifecycle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/hook"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// hookGate runs the user's hooks before machines go out of service, and once they are back. It first ends those that
// an earlier run left. All of it is done under the lock: a run ends its hooks before it releases the lock, so a record
// without a living run is a hook to end. Only the loop uses it.
type hookGate struct {
	hooks Hooks
	tell  func(Event)
	// begins is false in a run that only ends hooks.
	begins bool
	// begun are the hooks of this run and those that it found recorded, by key.
	begun map[string]*begunHook
	// answered receives what the loop does with the outcome of a part that ran, and running counts these.
	answered chan func() error
	running  int
	// looked is true once the records were read, and read once they were read under the current lock. records is how
	// many there were.
	looked, read, reading bool
	records               int
	// ctx is that of the parts that run, and cancel ends them.
	ctx    context.Context //nolint:containedctx // an ending run ends its hooks in another context
	cancel context.CancelFunc
	// failed are the failures that a run continues after.
	failed []string

	mu      sync.Mutex
	reasons map[string]string // why parts did not succeed yet, by key
}

// hookStage is how far a hook is.
type hookStage int

const (
	hookBegins hookStage = iota
	hookBegun
	hookEnds
	// hookLeft is a hook that could not be ended, and stays recorded.
	hookLeft
)

type begunHook struct {
	hook.Started

	stage hookStage
	// found is true for a hook of an earlier run.
	found bool
	// machines are those that it began for; true once their step began.
	machines map[string]bool
}

func newHookGate(r *Runner) *hookGate {
	return &hookGate{hooks: r.Hooks, tell: r.tell, begins: !r.endsHooks, begun: map[string]*begunHook{},
		answered: make(chan func() error), reasons: map[string]string{}}
}

// admits reports whether the hooks for a machine have begun, and begins them.
func (g *hookGate) admits(ctx context.Context, m cluster.Machine, node string) bool {
	if g.hooks == nil || !g.begins {
		return true
	}

	ready := true

	for _, h := range g.hooks.Of(m, node) {
		b := g.begun[h.Key]
		if b == nil {
			b = &begunHook{Started: h, stage: hookLeft, machines: map[string]bool{}}
			g.begun[h.Key] = b
		}

		if b.stage == hookLeft {
			g.begin(ctx, b)
		}

		if b.stage != hookEnds {
			b.machines[m.Name] = false
		}

		ready = ready && b.stage == hookBegun
	}

	return ready
}

// awaits reports whether hooks began for a machine whose step did not begin yet. Its checks have passed then, and a
// hook may be why they would not pass now.
func (g *hookGate) awaits(machine string) bool {
	for _, b := range g.begun {
		if started, known := b.machines[machine]; known && !started {
			return true
		}
	}

	return false
}

// ends reports whether a hook ends: the checks that follow must not see what it undoes.
func (g *hookGate) ends() bool {
	return slices.ContainsFunc(g.ordered(), func(b *begunHook) bool { return b.stage == hookEnds })
}

// out records that the step of a machine begins.
func (g *hookGate) out(machine string) {
	for _, b := range g.begun {
		if _, known := b.machines[machine]; known {
			b.machines[machine] = true
		}
	}
}

// endedFound reports whether no hook of an earlier run is left. Otherwise it ends them.
func (g *hookGate) endedFound(ctx context.Context, locked bool) bool {
	if g.hooks == nil || !locked {
		return true
	}

	if !g.read {
		g.look(ctx, true)

		return false
	}

	ended := true

	for _, b := range g.ordered() {
		if b.found && b.stage != hookLeft {
			ended = false

			g.end(ctx, b)
		}
	}

	return ended
}

// look reads the records; locked is whether this run has the lock.
func (g *hookGate) look(ctx context.Context, locked bool) {
	if g.reading {
		return
	}

	g.reading = true

	var found []hook.Started

	g.do(ctx, func(ctx context.Context) error {
		return wait.Until(ctx, DefaultInterval, func(ctx context.Context) (err error) {
			found, err = g.hooks.Recorded(ctx)

			return err
		})
	}, func(err error) error {
		g.reading = false

		switch {
		case g.ctx.Err() != nil:
			return nil //nolint:nilerr // it was cut off, and the run has its own error
		case err != nil:
			return wait.Permanent(fmt.Errorf("read which hooks earlier runs began: %w", err))
		}

		g.looked, g.read, g.records = true, locked, len(found)

		for _, h := range found {
			if locked && g.begun[h.Key] == nil {
				g.begun[h.Key] = &begunHook{Started: h, stage: hookBegun, found: true}
			}
		}

		return nil
	})
}

func (g *hookGate) begin(ctx context.Context, b *begunHook) {
	b.stage, b.found, b.machines = hookBegins, false, map[string]bool{}

	g.do(ctx, func(ctx context.Context) error { return g.hooks.Begin(ctx, b.Started, g.waiting(b)) },
		func(err error) error {
			b.stage = hookBegun

			return g.judge(b, err)
		})
}

// end ends a hook that has begun.
func (g *hookGate) end(ctx context.Context, b *begunHook) {
	if b.stage != hookBegun {
		return
	}

	b.stage = hookEnds

	g.do(ctx, func(ctx context.Context) error { return g.hooks.End(ctx, b.Started, g.waiting(b)) },
		func(err error) error {
			switch {
			case err == nil:
				delete(g.begun, b.Key)
			case g.ctx.Err() != nil:
				b.stage = hookBegun // it was cut off
			default:
				b.stage = hookLeft
			}

			return g.judge(b, err)
		})
}

// judge is the error of a run whose hook failed.
func (g *hookGate) judge(b *begunHook, err error) error {
	g.waiting(b)("")

	if err == nil || g.ctx.Err() != nil {
		return nil //nolint:nilerr // it was cut off, and the run has its own error
	}

	text := fmt.Sprintf("%s: %s", b.Started, err)

	if b.Continue || !g.begins {
		g.failed = append(g.failed, text)
		g.tell(Event{State: Note, Reason: text})

		return nil
	}

	return wait.Permanent(fmt.Errorf("%s: %w", b.Started, err))
}

// do runs a part. The loop does then with its error.
func (g *hookGate) do(ctx context.Context, part func(context.Context) error, then func(error) error) {
	if g.ctx == nil || g.ctx.Err() != nil {
		g.ctx, g.cancel = context.WithCancel(ctx)
	}

	within := g.ctx
	g.running++

	go func() {
		err := finally(func() error { return part(within) })
		g.answered <- func() error { return then(err) }
	}()
}

// take records the outcome of a part. The error ends the run.
func (g *hookGate) take(then func() error) error {
	g.running--

	return then()
}

// waiting records why a part did not succeed yet.
func (g *hookGate) waiting(b *begunHook) func(reason string) {
	return func(reason string) {
		g.mu.Lock()
		defer g.mu.Unlock()

		if g.reasons[b.Key] = fmt.Sprintf("for the %s: %s", b.Started, reason); reason == "" {
			delete(g.reasons, b.Key)
		}
	}
}

// holds is why the run waits.
func (g *hookGate) holds() (holds []step.Hold) {
	g.mu.Lock()
	defer g.mu.Unlock()

	for _, key := range slices.Sorted(maps.Keys(g.reasons)) {
		holds = append(holds, step.Hold{Reason: "waits " + g.reasons[key]})
	}

	return holds
}

// report reports why the run waits.
func (g *hookGate) report() {
	for _, h := range g.holds() {
		g.tell(Event{State: Waiting, Reason: h.Reason})
	}
}

func (g *hookGate) ordered() []*begunHook {
	out := make([]*begunHook, 0, len(g.begun))
	for _, key := range slices.Sorted(maps.Keys(g.begun)) {
		out = append(out, g.begun[key])
	}

	return out
}

// release ends all hooks before the lock is released, and reports whether that is done.
func (g *hookGate) release(ctx context.Context) bool {
	for _, b := range g.ordered() {
		g.end(ctx, b)
	}

	return g.running == 0 && !slices.ContainsFunc(g.ordered(), func(b *begunHook) bool { return b.stage != hookLeft })
}

// released records that this run does not have the lock any more.
func (g *hookGate) released() { g.read = false }

// settled reports whether no hook is left to end at the end of a run. A run that took nothing out of service ends
// those of an earlier run.
func (g *hookGate) settled(ctx context.Context, gate *leaseGate) bool {
	switch {
	case g.hooks == nil || !g.begins && !gate.held():
		return true
	case gate.held() && !g.read:
		g.look(ctx, true)

		return false
	case !gate.held() && !g.looked:
		g.look(ctx, false)

		return false
	case !gate.held() && g.records > 0:
		gate.open(ctx, g.tell)

		return false
	default:
		return g.release(ctx)
	}
}

// lastHooks is how long an interrupted run may take to end its hooks.
const lastHooks = time.Minute

// undo ends all hooks of a run that gives up, whatever its machines do, and reports those that stay. The next apply
// ends these.
func (g *hookGate) undo(ctx context.Context, gate *leaseGate) (kept []step.Hold) {
	if g.hooks == nil {
		return nil
	}

	g.drain(true)

	if ctx.Err() != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastHooks)
		defer cancel()

		ctx = last
	}

	if gate.held() {
		g.release(ctx)
	}

	g.drain(false)

	for _, b := range g.ordered() {
		kept = append(kept, step.Hold{Reason: fmt.Sprintf("the %s is not undone; the next apply does that", b.Started)})
	}

	return kept
}

// drain waits for the parts that run. Their errors are less useful than that of the run.
func (g *hookGate) drain(cancel bool) {
	if cancel && g.cancel != nil {
		g.cancel()
	}

	for g.running > 0 {
		if err := g.take(<-g.answered); err != nil {
			g.tell(Event{State: Note, Reason: err.Error()})
		}
	}
}

// left are the names of the hooks that stay begun; nil where that is unknown.
func (g *hookGate) left() []string {
	if g.hooks == nil || !g.looked {
		return nil
	}

	names := []string{}
	for _, b := range g.ordered() {
		names = append(names, b.Name)
	}

	return slices.Compact(names)
}

// endHooks reports what hooks wait for, and ends those whose machines are back. Those of a rollout end with the run.
func (w *work) endHooks(ctx context.Context, have cluster.Snapshot) {
	w.hooks.report()

	if !w.gate.held() {
		return
	}

	for _, b := range w.hooks.ordered() {
		if w.isBack(b, have) {
			w.hooks.end(ctx, b)
		}
	}
}

// isBack reports whether all machines of a hook are back in service. The record of an earlier run does not list them.
func (w *work) isBack(b *begunHook, have cluster.Snapshot) bool {
	if b.found {
		return !slices.ContainsFunc(slices.Concat(w.want.Machines, w.want.ChangeOnly), func(m cluster.Machine) bool {
			return (b.Machine == "" || b.Machine == m.Name) && !w.inService(m, have)
		})
	}

	for name, started := range b.machines {
		m, known := w.want.Find(name)
		if !started || known && !w.inService(m, have) {
			return false
		}
	}

	return b.Scope == hook.Machine && len(b.machines) > 0
}

// inService reports whether a machine works and takes pods again, or has left the cluster.
func (w *work) inService(m cluster.Machine, have cluster.Snapshot) bool {
	if _, busy := w.running[m.Name]; busy {
		return false
	}

	if slices.ContainsFunc(w.want.Removed, func(r cluster.Machine) bool { return r.Name == m.Name }) {
		return have.Machines[m.Name].Access != step.Member
	}

	node, registered := have.NodeOf(m)

	return cluster.NotReady(w.want, have, m) == "" && !(registered && node.HeldBack())
}
