package lifecycle

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// DefaultInterval is the pause between two observations of unsettled machines.
const DefaultInterval = time.Second

// Runner brings the machines of one resource to what is wanted. A Runner serves one run. It is not safe for
// concurrent use.
type Runner struct {
	Fleet      Fleet
	Kubernetes Kubernetes
	// Configs are the configurations to send, by machine name.
	Configs map[string][]byte
	// Images sets Kubernetes images in a configuration and changes nothing else; nil where none is ever set.
	Images func(config []byte, images kubenames.Images) ([]byte, error)
	// Keys sets keys in a configuration and changes nothing else. active is the active configuration of a member, whose
	// keys can be used too. nil where none is ever set.
	Keys   func(config, active []byte, keys rotation.Keys) ([]byte, error)
	Policy cluster.Policy
	// Window reports the state of the maintenance window at a time, in a run that ends at another one (zero for never);
	// nil where there is no window.
	Window func(now, ends time.Time) cluster.Window
	// Snapshots stores an etcd snapshot before the first step of a run that takes a control plane out of service or out
	// of etcd; nil takes none.
	Snapshots Snapshots
	// Founding is shared by all runs of a process on the cluster; nil where there is one at a time.
	Founding Founding
	// Peers are the other runs of the process on the cluster; nil where they are unknown.
	Peers Peers
	// Rejoining names the control planes that other runs of this process replace; nil where there is one run at a time.
	Rejoining func() []cluster.Rejoining
	// Restoration is what a cluster.Restore restores; nil where none is wanted.
	Restoration Restoration
	// Claimed reports whether another resource of this process took a machine over, by its address or its hardware's
	// UUID; nil where none can have. It does no I/O.
	Claimed func(m cluster.Machine) bool
	// HasLeft reports whether a machine to remove already left its cluster in this process, because it ends: it is gone
	// once it is silent. nil where none can have. It does no I/O.
	HasLeft func(m cluster.Machine) bool
	// Lock guards disruptive steps; nil where no other run can interfere.
	Lock Lock
	// Checks are the user's own checks. They run before a machine goes out of service and once it is back; nil where
	// there are none. They do not hold a teardown or a removal.
	Checks Checks
	// Hooks are the user's hooks around the time that machines are out of service; nil where there are none. A teardown
	// runs none, and a removal only ends those that an earlier run left.
	Hooks Hooks
	// Interval is the pause between observations; zero is DefaultInterval.
	Interval time.Duration
	// Events receives events from several goroutines; nil is allowed.
	Events func(e Event)
	// Observed receives the snapshot of each round, once its steps have begun and its waits were reported; nil is
	// allowed. next lists what the run does next, as [cluster.Next] does, from any goroutine; nil at the end of the run.
	// It does no I/O.
	Observed func(want cluster.Spec, have cluster.Snapshot, next func(most int) []step.Step)

	// forecast decides about a model of the machines; nil before a run.
	forecast func(have cluster.Snapshot) cluster.Decision
	// endsHooks is set in a run that begins no hooks.
	endsHooks bool
}

// Result is the result of a run.
type Result struct {
	// Snapshot is the last observation.
	Snapshot cluster.Snapshot
	// Touched is true when a machine was sent a change, or when machines of this cluster were found. From then on the
	// result must be recorded.
	Touched bool
	// Done lists the finished steps in order.
	Done []step.Step
	// Behind is what is left to a later run, and why.
	Behind []step.Kept
	// Relinquished names the machines to remove that another resource took over. Nothing was sent to them.
	Relinquished []string
	// Left names the removed machines that could not be reset. They are out of the cluster, and still have its
	// configuration.
	Left []step.Hold
	// Away names the machines that accepted their reset and did not come back while the run waited.
	Away []step.Hold
	// Unwiped names the machines that were reset and wait in maintenance mode with data that the reset had to wipe, with
	// the volumes and disks that have it.
	Unwiped []step.Hold
	// FailedHooks are the failures of hooks after which the run continued.
	FailedHooks []string
}

// Converge makes the machines what want says. It returns once nothing is left to do and every machine is a working
// part of its cluster. An endpoint that is silent even then is in the snapshot and not an error, because no machine
// can repair it. It stops early, with an *[IncompleteError], when the context ends, when a step fails permanently, or
// when the planner refuses. It is idempotent: another run continues where it stopped.
func (r *Runner) Converge(ctx context.Context, want cluster.Spec) (Result, error) {
	ends, _ := ctx.Deadline()
	want = want.Ordered()

	// What waits for the maintenance window is next, too.
	r.forecast = func(have cluster.Snapshot) cluster.Decision { return cluster.Plan(want, have, r.Policy) }

	result, err := r.run(ctx, want, func(have cluster.Snapshot) cluster.Decision {
		if r.Window != nil {
			have.Window = r.Window(have.Time, ends)
		}

		return settled(want, have, cluster.Plan(want, have, r.Policy))
	})
	if err == nil {
		r.leave(&result, want.Removed)
	}

	if err == nil && want.OwnsControlPlane() {
		result.Snapshot.Kubernetes.Endpoint = r.awaitEndpoint(ctx)
	}

	return result, err
}

// Teardown resets the machines of want, in the order of cluster.PlanTeardown. Destructive. Machines that do not
// answer, or answer with another identity, are left alone. The returned *[IncompleteError] names them after all
// others were reset. Machines that accepted their reset and do not come back are in Result.Away, which is not an
// error. It is idempotent.
func (r *Runner) Teardown(ctx context.Context, want cluster.Spec) (Result, error) {
	want.RestoreFrom, r.Checks = "", nil // a teardown restores nothing and checks no health
	r.endsHooks = true

	going := want
	going.Machines, going.Removed = nil, want.Machines

	// Others may be on their way back: a cluster with control planes of other resources does not end with a replacement.
	shared := want.Replaced && len(want.OtherControlPlanes) > 0

	if want.OwnsControlPlane() && (shared || r.othersLive(ctx, going)) {
		r.Policy.KeepNodes = false

		return r.Remove(ctx, going)
	}

	want.OtherControlPlanes, going.OtherControlPlanes, r.Hooks = nil, nil, nil

	result, err := r.runWith(ctx, want, newObserver(r, want).withoutEtcd(), func(have cluster.Snapshot) cluster.Decision {
		return cluster.PlanTeardown(want, have, r.Policy)
	})
	if err != nil {
		return result, err
	}

	r.leave(&result, want.Machines)

	if len(result.Left) > 0 {
		return result, &IncompleteError{Phase: cluster.Degraded, Holds: result.Left, Done: result.Done, Err: ErrLeftBehind}
	}

	return result, nil
}

// othersLive reports whether etcd members or Kubernetes control planes exist that are not among the going machines.
// The cluster then lives on, and the machines leave it.
func (r *Runner) othersLive(ctx context.Context, going cluster.Spec) bool {
	return cluster.LivesOn(going, r.Observe(ctx, going))
}

// leave records in a result which machines were not reset, or did not return from their reset.
func (r *Runner) leave(result *Result, machines []cluster.Machine) {
	have := result.Snapshot

	for _, m := range machines {
		reason := cluster.TeardownLeft(m, have, r.Policy)

		switch hold := (step.Hold{Machine: m.Name, Reason: reason}); {
		case cluster.OwnedByOther(have, m):
			result.Relinquished = append(result.Relinquished, m.Name)
		case reason == "":
		case cluster.AwayAfterReset(m, have, r.Policy):
			result.Away = append(result.Away, hold)
		default:
			result.Left = append(result.Left, hold)
		}
	}
}

// Observe asks every machine and the Kubernetes API once. It changes nothing.
func (r *Runner) Observe(ctx context.Context, want cluster.Spec) cluster.Snapshot {
	return newObserver(r, want).observe(ctx)
}

// run is the loop: observe, decide, start what may start, wait for the next event.
func (r *Runner) run(
	ctx context.Context, want cluster.Spec, decide func(cluster.Snapshot) cluster.Decision,
) (Result, error) {
	return r.runWith(ctx, want, newObserver(r, want).withViews(), decide)
}

// runWith is run with an observer.
func (r *Runner) runWith(
	ctx context.Context, want cluster.Spec, watch *observer, decide func(cluster.Snapshot) cluster.Decision,
) (Result, error) {
	work := newWork(r, want)
	work.standing = enter(r.Peers)
	watch.awaitNews(ctx)

	if r.forecast == nil {
		r.forecast = decide
	}

	defer func() {
		watch.news.close()
		work.wait(watch)
		work.checks.close(r.tell)
		work.hooks.undo(ctx, work.gate)
		work.gate.close()
		work.standing.leave()
	}()

	var (
		result Result
		err    error
	)

	// The result is recorded even when a panic ends the run.
	if mistake := panics.Call(func() { result, err = r.loop(ctx, want, watch, work, decide) }); mistake != nil {
		have, _, _ := watch.latest()

		return work.result(have), &IncompleteError{
			Phase: cluster.PhaseOf(want, have), Failed: work.failures(), Done: work.lasting(have), Err: mistake,
		}
	}

	return result, err
}

// loop observes, decides and starts steps until nothing is left to do, or the run gives up.
func (r *Runner) loop(
	ctx context.Context, want cluster.Spec, watch *observer, work *work, decide func(cluster.Snapshot) cluster.Decision,
) (Result, error) {
	for {
		begun := time.Now()
		have := work.look(ctx, watch)
		decision := decide(have)
		work.standing.decided(work.want, have, decision)

		if len(decision.Refusals) > 0 {
			return r.giveUp(ctx, want, watch, work, decision, &RefusedError{decision.Refusals})
		}

		if decision.Done() && work.idle() && work.hooks.settled(ctx, work.gate) && work.checks.settled(ctx, r.tell) {
			// Rarely polled machines are observed once more.
			if watch.refresh() && ctx.Err() == nil {
				continue
			}

			r.observed(want, have, nil)

			result := work.result(have)
			result.Behind = decision.Behind

			return result, nil
		}

		// An interrupt cuts observations off, and earlier observations do not justify another step.
		if err := context.Cause(ctx); err != nil {
			return r.giveUp(ctx, want, watch, work, decision, err)
		}

		r.report(decision)

		// A snapshot that cannot be restored must be known before the first machine is changed.
		if fetched, err := work.fetch(ctx, decision, have); err != nil {
			return r.giveUp(ctx, want, watch, work, decision, err)
		} else if fetched {
			continue
		}

		work.endHooks(ctx, have)
		work.yield(ctx, decision)

		if err := work.start(ctx, decision.Steps, watch, have); err != nil {
			return r.giveUp(ctx, want, watch, work, decision, err)
		}

		r.observed(want, have, func(most int) []step.Step {
			return cluster.Next(want, have, r.Policy, most, r.forecast)
		})

		work.settleTime = min(time.Since(begun), r.interval())

		if err := work.nextEvent(ctx, r.pause(decision, have), watch); err != nil {
			return r.giveUp(ctx, want, watch, work, decision, err)
		}
	}
}

// giveUp ends a run that cannot continue: it lets the running steps finish, and observes once more for the record.
func (r *Runner) giveUp(
	ctx context.Context, want cluster.Spec, watch *observer, work *work, decision cluster.Decision, cause error,
) (Result, error) {
	work.wait(watch)

	begun := work.hooks.undo(ctx, work.gate)

	watch.rest()

	// The record of an interrupted run gets a few seconds more than the canceled context allows.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastObservation)
	defer cancel()

	have := watch.observe(last)
	r.observed(want, have, nil)

	holds := r.giveBack(last, want, have)

	// What the run waited for when a step failed for good is not why it ended.
	if !errors.As(cause, new(*StepError)) {
		waits := slices.Concat(decision.Holds, work.checks.holds(), work.hooks.holds())
		if !errors.As(cause, new(*RefusedError)) { // a refused run would not go on with the lock
			waits = append(waits, work.gate.holds()...)
		}

		holds = append(waits, holds...)
	}

	holds = append(holds, begun...)

	return work.result(have), &IncompleteError{
		Phase:  cluster.PhaseOf(want, have),
		Holds:  holds,
		Failed: work.failures(),
		Done:   work.lasting(have),
		Err:    cause,
	}
}

// lastObservation is the timeout of the observation after an interrupt.
const lastObservation = 15 * time.Second

func (r *Runner) interval() time.Duration {
	if r.Interval > 0 {
		return r.Interval
	}

	return DefaultInterval
}

// longestPause is the pause between two observations while a run waits for the maintenance window.
const longestPause = 30 * time.Second

// pause is the time until the next observation, unless an event comes first.
func (r *Runner) pause(d cluster.Decision, have cluster.Snapshot) time.Duration {
	if d.Opens.IsZero() {
		return r.interval()
	}

	return max(r.interval(), min(longestPause, d.Opens.Sub(have.Time)))
}

func (r *Runner) observed(want cluster.Spec, have cluster.Snapshot, next func(most int) []step.Step) {
	if r.Observed != nil {
		r.Observed(want, have, next)
	}
}

func (r *Runner) report(d cluster.Decision) {
	for _, h := range d.Holds {
		r.tell(Event{State: Waiting, Machine: h.Machine, Reason: h.Reason})
	}
}
