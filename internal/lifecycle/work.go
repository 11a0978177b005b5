package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// work is the set of running steps, at most one on a machine. Only the loop uses it; the steps report through a
// channel.
type work struct {
	runner  *Runner
	want    cluster.Spec
	running map[string]step.Step
	ended   chan outcome
	// finished has the last successful step of each machine, and the machine's state when it was decided.
	finished map[string]decided
	// failed is the last step of each machine that failed and may be retried.
	failed  map[string]failure
	done    []step.Step
	touched bool
	// disrupted has the successful disruptive steps, so that none is repeated because its effect does not show.
	disrupted map[string]bool
	// times counts how often a step succeeded.
	times      map[step.Step]int
	gate       *leaseGate
	standing   *standing
	checks     *checkGate
	hooks      *hookGate
	precaution precaution
	// fetched is set once the snapshot for the restore is available.
	fetched bool
	// stale receives requests of steps for a new observation.
	stale chan struct{}
	// settleTime is how long the loop collects steps that end close together before the next observation.
	settleTime time.Duration
	// ending is closed when the run gives up: from then on nothing goes out of service.
	ending chan struct{}
	end    func()
}

type outcome struct {
	step    step.Step
	err     error
	elapsed time.Duration
	// cutOff is true for a step that did not end before the run did.
	cutOff bool
}

type failure struct {
	step step.Step
	err  error
	at   time.Time
}

type decided struct {
	step  step.Step
	state step.MachineState
}

func newWork(r *Runner, want cluster.Spec) *work {
	ending := make(chan struct{})

	return &work{
		runner: r, want: want.Ordered(),
		running:  map[string]step.Step{},
		ended:    make(chan outcome, len(want.Known())),
		finished: map[string]decided{},
		failed:   map[string]failure{},

		disrupted: map[string]bool{},
		times:     map[step.Step]int{},
		gate:      newLeaseGate(r.Lock),
		checks:    newCheckGate(r.Checks),
		hooks:     newHookGate(r),
		stale:     make(chan struct{}, 1),
		ending:    ending,
		end:       sync.OnceFunc(func() { close(ending) }),
	}
}

// look observes the cluster, and what other runs of the process do to it meanwhile.
func (w *work) look(ctx context.Context, watch *observer) cluster.Snapshot {
	w.standing.look()

	have := watch.look(ctx)
	have.Elsewhere = w.standing.elsewhere()

	return have
}

// start runs the steps on idle machines. A step that already succeeded on an unchanged machine is an error: the
// planner and the machine disagree, and a retry would never end.
//
// have is the observation on which they were decided.
func (w *work) start(ctx context.Context, steps []step.Step, watch *observer, have cluster.Snapshot) error {
	disrupts := false

	for _, op := range steps {
		name := op.On()
		if _, busy := w.running[name]; busy || w.resting(name) {
			continue
		}

		if !w.admits(ctx, op, watch.machine(name), have, &disrupts) {
			continue
		}

		state := watch.state(name)
		if w.repeats(op, state) {
			return unchanged(op, state)
		}

		w.finished[name] = decided{op, state}
		w.hooks.out(name)

		watch.busy(name, op)
		w.runner.tell(Event{State: StepStarted, Machine: name, Step: op})

		begun := time.Now()

		o := stepRun{
			step: op, on: watch.machine(name), want: w.want, images: state.Images, have: have,
			confirm: func(context.Context) error { return nil },
		}
		if s, ok := op.(step.RemoveMember); ok {
			o.via = watch.machine(s.Via)
		}

		switch {
		case op.Disrupts(), op.ChangesEtcd():
			o.confirm = func(ctx context.Context) error { return w.confirm(ctx, op, watch, have) }
		case step.BeginsEtcd(op):
			o.confirm = func(ctx context.Context) error { return w.confirmBeginning(ctx, op, watch) }
		case step.Soaks(op):
			o.confirm = func(context.Context) error { return w.confirmSoak(watch, have) }
		}

		// From here on the loop waits for it.
		w.running[name] = op

		go func() {
			err := finally(func() error { return w.carryOut(ctx, o, watch, have) })
			w.ended <- outcome{op, err, time.Since(begun), wait.Over(ctx)}
		}()
	}

	// Steps that begin together use one check result.
	if disrupts {
		w.checks.used()
	}

	return nil
}

// admits reports whether a step may begin. A disruptive one waits for the lock. One that takes a working machine out of
// service then waits for the hooks of an earlier run, the user's checks and the hooks for the machine. disrupts is set
// when it uses the result of the checks.
func (w *work) admits(
	ctx context.Context, op step.Step, m cluster.Machine, have cluster.Snapshot, disrupts *bool,
) bool {
	if locked(op, have) && !w.gate.open(ctx, w.runner.tell) && !w.endsWithoutLock(op) {
		return false
	}

	if !takesOut(op, have) {
		return true
	}

	if !w.hooks.awaits(m.Name) {
		if !w.hooks.endedFound(ctx, w.gate.held()) || w.hooks.ends() || !w.checks.open(ctx, w.runner.tell) {
			return false
		}

		*disrupts = true
	}

	return w.hooks.admits(ctx, m, cmp.Or(have.Machines[m.Name].NodeName, m.NodeName, m.Name))
}

// endsWithoutLock reports whether a step is the reset that ends a cluster. An API that rejects writes of the lock
// must not hold it, because no other run can acquire the lock either.
func (w *work) endsWithoutLock(op step.Step) bool {
	reset, is := op.(step.Reset)

	return is && reset.Shared && w.gate.unwritable(w.runner.Policy.DeadAfter)
}

// carryOut runs a step, under the lock where it needs one.
func (w *work) carryOut(ctx context.Context, o stepRun, watch *observer, have cluster.Snapshot) error {
	if locked(o.step, have) {
		if err := w.gate.guarded(ctx); err != nil {
			return err
		}
	}

	if err := w.precaution.take(ctx, w.runner, o, watch); err != nil {
		return err
	}

	return w.runner.execute(ctx, o)
}

// confirm checks once more right before a machine goes out of service. During its drain the lock may have been lost,
// other machines may have failed, or the run may be ending. have is the observation on which the step was decided.
func (w *work) confirm(ctx context.Context, op step.Step, watch *observer, have cluster.Snapshot) error {
	if locked(op, have) {
		if err := w.gate.guarded(ctx); err != nil {
			return fmt.Errorf("%w: %w", errUnconfirmed, err)
		}
	}

	// Workers share a budget, for which the interval is accurate enough; etcd has none.
	doubted := watch.allNames()
	if watch.machine(op.On()).Role == step.Worker {
		doubted = append(watch.controlPlanes(), op.On())

		watch.refresh()
	}

	now, err := w.newSnapshot(ctx, watch, doubted...)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnconfirmed, err)
	}

	// While the only member is busy, no control plane lists the members.
	if !now.Etcd.Known && len(have.Etcd.Members) == 1 {
		now.Etcd = have.Etcd
	}

	if reason := cluster.Preflight(w.want, now, w.runner.Policy, op); reason != "" {
		return fmt.Errorf("%w: %s", errUnconfirmed, reason)
	}

	return nil
}

// confirmBeginning observes every control plane once more right before etcd begins on a machine, and claims the
// bootstrap in the process. From then on this run asks no other machine, even if the call fails.
func (w *work) confirmBeginning(ctx context.Context, op step.Step, watch *observer) error {
	now, err := w.newSnapshot(ctx, watch, watch.allNames()...)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnconfirmed, err)
	}

	reason := cluster.Preflight(w.want, now, w.runner.Policy, op)
	if reason == "" && w.runner.Founding != nil && !w.runner.Founding.Claim(watch.machine(op.On())) {
		reason = "another resource bootstraps etcd"
	}

	if reason != "" {
		return fmt.Errorf("%w: %s", errUnconfirmed, reason)
	}

	watch.update(op.On(), func(s *step.MachineState) { s.BootstrapSent, s.Fresh = true, false })

	return nil
}

// newSnapshot makes the run ask some machines at once, and waits for the answers. Earlier observations do not justify
// taking a machine out of service.
func (w *work) newSnapshot(ctx context.Context, watch *observer, doubted ...string) (cluster.Snapshot, error) {
	watch.outdate(doubted...)

	asked := time.Now()

	select {
	case w.stale <- struct{}{}:
	default: // an observation is already requested
	}

	for {
		now, begun, next := watch.latest()

		select {
		case <-w.ending:
			return now, errors.New("the run is ending")
		default:
		}

		if begun.After(asked) {
			return now, nil
		}

		select {
		case <-next:
		case <-w.ending:
		case <-ctx.Done():
			return now, fmt.Errorf("wait for a new observation: %w", context.Cause(ctx))
		}
	}
}

// repeats reports whether a step would run again although it had no effect.
func (w *work) repeats(step step.Step, state step.MachineState) bool {
	if w.disrupted[step.Purpose()] || w.times[step] >= mostTimes {
		return true
	}

	before, ok := w.finished[step.On()]

	return ok && before.step == step && step.ShowsInState() && sameState(before.state, state)
}

// unchanged is the error of a step that succeeded without an effect: what the machine lacks is the cause.
func unchanged(op step.Step, state step.MachineState) error {
	if s, is := op.(step.ApplyConfig); is && s.Access == step.Maintenance {
		return fmt.Errorf("%s: %w", cluster.NotInstalled(s.Address, s.Installer), ErrNoProgress)
	}

	if cause := strings.Join(state.Unmet, ", "); cause != "" {
		return fmt.Errorf("%s lacks %s; step %q did not change that: %w", op.On(), cause, op, ErrNoProgress)
	}

	return fmt.Errorf("step %q succeeded but did not change the machine: %w", op, ErrNoProgress)
}

// mostTimes is how often one step may succeed in a run if its effect shows late, or not in the machine. The effect
// must show within a few observations.
const mostTimes = 10

// yield releases the lock while the rest of a decision waits for other runs or for the maintenance window, once the
// hooks have ended.
func (w *work) yield(ctx context.Context, decision cluster.Decision) {
	if decision.Yields && len(decision.Steps) == 0 && w.idle() && w.hooks.release(ctx) {
		w.gate.giveBack()
		w.hooks.released()
	}
}

// leave releases the lock once the only machines of a run are being reset, so that no other run waits for their boot.
func (w *work) leave(op step.Step) {
	if _, reset := op.(step.Reset); reset && len(w.want.Machines) == 0 && len(w.want.Removed) == 1 {
		w.gate.giveBack()
	}
}

// nextEvent waits until a step ends, until the next observation is due or requested by a step, or until the context
// ends. The error is that of a step that must not be repeated, or the context's.
func (w *work) nextEvent(ctx context.Context, interval time.Duration, watch *observer) error {
	timer := time.NewTimer(interval)
	defer timer.Stop()

	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	case <-w.stale:
		return nil
	case <-watch.news.came:
		return w.collect(ctx, watch)
	case end := <-w.ended:
		if err := w.settle(end, watch); err != nil || w.idle() {
			return err
		}

		return w.collect(ctx, watch)
	case a := <-w.gate.acquired:
		return w.gate.take(a)
	case err := <-w.checks.answered:
		return w.checks.take(err)
	case then := <-w.hooks.answered:
		return w.hooks.take(then)
	case <-w.gate.lost:
		return wait.Permanent(ErrLockLost)
	}
}

// collect records finished steps for as long as the last round took, so that more steps can end. With a thousand
// machines, one round for each step would never finish.
func (w *work) collect(ctx context.Context, watch *observer) error {
	settleTime := time.NewTimer(w.settleTime)
	defer settleTime.Stop()

	for {
		select {
		case end := <-w.ended:
			if err := w.settle(end, watch); err != nil || w.idle() {
				return err
			}
		case <-settleTime.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// settle records a finished step. The error ends the run.
func (w *work) settle(end outcome, watch *observer) error {
	w.record(end, watch)

	if wait.IsPermanent(end.err) {
		delete(w.failed, end.step.On()) // it is in the error of the run

		return &StepError{end.step, end.err}
	}

	return nil
}

func (w *work) record(end outcome, watch *observer) {
	name := end.step.On()
	delete(w.running, name)
	watch.changed(name, end.step, end.err)

	w.touched = w.touched || !leftBlank(end)

	if end.err == nil {
		delete(w.failed, name)

		w.done = append(w.done, end.step)
		w.times[end.step]++

		if why := end.step.Purpose(); why != "" {
			w.disrupted[why] = true
		}

		if _, reset := end.step.(step.Reset); reset && w.runner.Founding != nil {
			w.runner.Founding.Release(watch.machine(name))
		}

		w.leave(end.step)
		w.runner.tell(Event{State: StepFinished, Machine: name, Step: end.step, Elapsed: end.elapsed})

		return
	}

	delete(w.finished, name)

	w.runner.tell(Event{State: StepFailed, Machine: name, Step: end.step, Reason: end.err.Error(), Elapsed: end.elapsed})

	// The error of a step that was cut off is less useful than the one before it.
	if before, again := w.failed[name]; again && end.cutOff {
		end.err = before.err
	}

	w.failed[name] = failure{end.step, end.err, time.Now()}
}

// leftBlank is true for a step that Talos refused on a machine that waits for its first configuration: it continues
// to wait.
func leftBlank(end outcome) bool {
	apply, is := end.step.(step.ApplyConfig)
	bug := (*panics.Error)(nil)

	return is && apply.Access == step.Maintenance && wait.IsPermanent(end.err) && !errors.As(end.err, &bug)
}

// resting is true for a machine whose last step just failed. It is asked again after one interval.
func (w *work) resting(name string) bool {
	f, ok := w.failed[name]

	return ok && time.Since(f.at) < w.runner.interval()
}

func (w *work) idle() bool { return len(w.running) == 0 }

// wait waits for the running steps. They use the run's context, so an interrupt ends them too.
func (w *work) wait(watch *observer) {
	w.end()

	for len(w.running) > 0 {
		w.record(<-w.ended, watch)
	}
}

// result is the result of the run, from the last observation.
func (w *work) result(have cluster.Snapshot) Result {
	have.Hooks = w.hooks.left()

	return Result{Snapshot: have, Done: w.lasting(have), Touched: w.touched || cluster.HasMembers(w.want, have),
		Unwiped: unwiped(have), FailedHooks: w.hooks.failed}
}

// unwiped are the machines that a failed wipe left with data.
func unwiped(have cluster.Snapshot) []step.Hold {
	var left []step.Hold

	for _, name := range slices.Sorted(maps.Keys(have.Machines)) {
		if s := have.Machines[name]; s.Access == step.Maintenance && s.Unwiped != "" {
			left = append(left, step.Hold{Machine: name, Reason: s.Unwiped})
		}
	}

	return left
}

// lasting are the finished steps without the upgrades that Talos rolled back.
func (w *work) lasting(have cluster.Snapshot) []step.Step {
	return slices.DeleteFunc(slices.Clone(w.done), func(op step.Step) bool {
		upgrade, ok := op.(step.Upgrade)
		state := have.Machines[op.On()]

		return ok && cluster.RolledBack(state) && state.Upgraded.Version == upgrade.To
	})
}

// failures are the errors of machines whose last step failed.
func (w *work) failures() []*StepError {
	var failed []*StepError
	for _, name := range slices.Sorted(maps.Keys(w.failed)) {
		failed = append(failed, &StepError{w.failed[name].step, w.failed[name].err})
	}

	return failed
}

// sameState compares two observations of a machine without their times.
func sameState(a, b step.MachineState) bool {
	a.Since, b.Since = time.Time{}, time.Time{}

	return reflect.DeepEqual(a, b)
}
