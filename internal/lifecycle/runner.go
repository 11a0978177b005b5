package lifecycle

import (
	"context"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// DefaultInterval is the pause between two observations of machines that are on
// their way.
const DefaultInterval = time.Second

// Runner brings the machines of one resource to what is wanted. A Runner serves
// one run; it is not safe for concurrent use.
type Runner struct {
	Fleet      Fleet
	Kubernetes Kubernetes
	// Configs is the configuration to send, by machine name.
	Configs map[string][]byte
	// Images sets images of Kubernetes in a configuration and leaves all else as it is; nil
	// where none is ever set.
	Images func(config []byte, images kubenames.Images) ([]byte, error)
	// Keys sets keys in a configuration and leaves all else as it is; active is the one that a member has, whose keys are
	// at hand, too. nil where none is ever set.
	Keys   func(config, active []byte, keys rotation.Keys) ([]byte, error)
	Policy cluster.Policy
	// Window tells how the maintenance window stands at a time, in a run that ends at another one (zero for never); nil
	// where there is none.
	Window func(now, ends time.Time) cluster.Window
	// Snapshots gets one of etcd before the first step of a run that takes a control plane
	// out of service or out of etcd; nil takes none.
	Snapshots Snapshots
	// Founding is shared by all runs of a process on the cluster; nil where there is one at a time.
	Founding Founding
	// Peers are the other runs of the process on the cluster; nil where nothing is known of them.
	Peers Peers
	// Rejoining names the control planes that other runs of this process replace; nil where there is one run at a time.
	Rejoining func() []cluster.Rejoining
	// Restoration is what a cluster.Restore restores; nil where none is wanted.
	Restoration Restoration
	// Claimed reports whether another resource of this process has taken a machine over, by its
	// address or its hardware's UUID; nil where none can have. It does no I/O.
	Claimed func(m cluster.Machine) bool
	// Lock guards disruptive steps; nil where no other run can be in the way.
	Lock Lock
	// Checks are the user's own, asked before a machine goes out of service and once it is back; nil where there are none.
	// What is taken down or removed for good is not held by them.
	Checks Checks
	// Interval between observations; zero is DefaultInterval.
	Interval time.Duration
	// Events is told what happens, by several goroutines; nil is allowed.
	Events func(e Event)
}

// Result is how a run ended.
type Result struct {
	// Snapshot is the last observation.
	Snapshot cluster.Snapshot
	// Touched is true when a machine was sent something that changes it, or when
	// machines of this cluster were found: from then on the outcome has to be
	// remembered.
	Touched bool
	// Done lists the steps that were finished, in order.
	Done []step.Step
	// Behind is what is left to a later run, and why.
	Behind []step.Kept
	// Relinquished names the machines that were to be removed and are another resource's by now:
	// nothing was sent to them.
	Relinquished []string
	// Left names the machines that were removed and could not be reset: they are out of
	// the cluster, and still hold its configuration.
	Left []step.Hold
	// Away names the machines that took their reset and did not come back while the run
	// waited for them.
	Away []step.Hold
}

// Converge makes the machines what want says and returns once nothing is left to
// do and every machine is a working part of its cluster. An endpoint that does not answer even then is in the snapshot
// and no error: no machine can mend it. It stops early, with an
// *[IncompleteError], when the context ends, when a step fails for good, or when the
// planner refuses. It is idempotent: run again, it goes on where it stopped.
func (r *Runner) Converge(ctx context.Context, want cluster.Spec) (Result, error) {
	ends, _ := ctx.Deadline()
	want = want.Ordered()

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

// Teardown resets the machines of want, in the order of cluster.PlanTeardown.
// Destructive. Machines that do not answer, or answer with another identity's, are
// left alone and named in the *[IncompleteError] that is returned after all others
// were reset. Those that took their reset and do not come back are in Result.Away, which is
// no error. It is idempotent.
func (r *Runner) Teardown(ctx context.Context, want cluster.Spec) (Result, error) {
	want.RestoreFrom, r.Checks = "", nil // what ends has nothing to begin with, and no health to be kept

	going := want
	going.Machines, going.Removed = nil, want.Machines

	// Others may be on their way back: a cluster with control planes of other resources does not end with a replacement.
	shared := want.Replaced && len(want.OtherControlPlanes) > 0

	if want.OwnsControlPlane() && (shared || r.othersLive(ctx, going)) {
		r.Policy.KeepNodes = false

		return r.Remove(ctx, going)
	}

	want.OtherControlPlanes, going.OtherControlPlanes = nil, nil

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

// othersLive reports whether etcd has members, or Kubernetes control planes, that are not among the machines which go:
// the cluster then lives on, and is left as one.
func (r *Runner) othersLive(ctx context.Context, going cluster.Spec) bool {
	return cluster.LivesOn(going, r.Observe(ctx, going))
}

// leave notes in a result which machines were not reset, or are not back from it.
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

	defer func() {
		watch.news.close()
		work.wait(watch)
		work.checks.close(r.tell)
		work.gate.close()
		work.standing.leave()
	}()

	var (
		result Result
		err    error
	)

	// What was done is recorded also when a mistake of the program ends the run.
	if mistake := panics.Call(func() { result, err = r.loop(ctx, want, watch, work, decide) }); mistake != nil {
		have, _, _ := watch.latest()

		return work.result(have), &IncompleteError{
			Phase: cluster.PhaseOf(want, have), Holds: work.failures(), Done: work.lasting(have), Err: mistake,
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

		if decision.Done() && work.idle() && work.checks.settled(ctx, r.tell) {
			// Those that are asked rarely are looked at once more.
			if watch.refresh() && ctx.Err() == nil {
				continue
			}

			result := work.result(have)
			result.Behind = decision.Behind

			return result, nil
		}

		// An interrupt cuts observations off, and what was known before is no ground
		// for another step.
		if err := context.Cause(ctx); err != nil {
			return r.giveUp(ctx, want, watch, work, decision, err)
		}

		r.report(decision)

		// What cannot be restored is better known before the first machine is touched.
		if fetched, err := work.fetch(ctx, decision, have); err != nil {
			return r.giveUp(ctx, want, watch, work, decision, err)
		} else if fetched {
			continue
		}

		if decision.Yields && len(decision.Steps) == 0 && work.idle() {
			work.gate.giveBack()
		}

		if err := work.start(ctx, decision.Steps, watch, have); err != nil {
			return r.giveUp(ctx, want, watch, work, decision, err)
		}

		work.lull = min(time.Since(begun), r.interval())

		if err := work.nextEvent(ctx, r.pause(decision, have), watch); err != nil {
			return r.giveUp(ctx, want, watch, work, decision, err)
		}
	}
}

// giveUp ends a run that cannot go on: it lets the steps that are under way
// finish, and observes once more for the record.
func (r *Runner) giveUp(
	ctx context.Context, want cluster.Spec, watch *observer, work *work, decision cluster.Decision, cause error,
) (Result, error) {
	work.wait(watch)
	watch.rest()

	// The record of an interrupted run is worth a few seconds more than the
	// context that was cancelled allows.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastObservation)
	defer cancel()

	have := watch.observe(last)
	cordoned := r.giveBack(last, want, have)

	return work.result(have), &IncompleteError{
		Phase: cluster.PhaseOf(want, have),
		Holds: slices.Concat(decision.Holds, work.checks.holds(), work.gate.holds(), work.failures(), cordoned),
		Done:  work.lasting(have),
		Err:   cause,
	}
}

// lastObservation bounds the observation after an interrupt.
const lastObservation = 15 * time.Second

func (r *Runner) interval() time.Duration {
	if r.Interval > 0 {
		return r.Interval
	}

	return DefaultInterval
}

// longestPause is between two observations while a run waits for the maintenance window.
const longestPause = 30 * time.Second

// pause is until the next observation, unless something happens before.
func (r *Runner) pause(d cluster.Decision, have cluster.Snapshot) time.Duration {
	if d.Opens.IsZero() {
		return r.interval()
	}

	return max(r.interval(), min(longestPause, d.Opens.Sub(have.Time)))
}

func (r *Runner) report(d cluster.Decision) {
	for _, h := range d.Holds {
		r.tell(Event{State: Waiting, Machine: h.Machine, Reason: h.Reason})
	}
}
