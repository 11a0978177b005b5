package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// errCanaryFailed ends a rollout after its first machines.
var errCanaryFailed = errors.New("the canary pool failed; no other machine was changed")

// soak observes the canary pool until its end. When it began is on the nodes, so that another run continues it. After
// a failure it begins again.
func (r *Runner) soak(ctx context.Context, o stepRun, s step.Soak) error {
	nodes, since := cluster.SoakingNodes(o.want, o.have)

	if now := time.Now(); since.IsZero() || since.After(now) {
		since = now

		if err := r.noteSoak(ctx, nodes, kubestate.Soak{Due: true, Since: since}); err != nil {
			return err
		}
	}

	until := since.Add(s.For)
	text := fmt.Sprintf("pool %s is observed until %s", s.Pool, until.UTC().Format(time.RFC3339))
	r.tell(Event{State: Note, Machine: s.Machine, Reason: text})

	var checked time.Time

	err := wait.Until(ctx, r.interval(), func(ctx context.Context) error {
		now := time.Now()

		if err := o.confirm(ctx); err != nil {
			return err
		}

		if over := !now.Before(until); over || now.Sub(checked) >= checksLast {
			if err := r.passChecks(ctx); err != nil || over {
				return err
			}

			checked = now
		}

		return errors.New(text)
	})

	switch {
	case err == nil:
		return r.noteSoak(ctx, nodes, kubestate.Soak{})
	case errors.Is(err, errCanaryFailed):
		return wait.Permanent(errors.Join(err, r.noteSoak(ctx, nodes, kubestate.Soak{Due: true})))
	default:
		return err
	}
}

// passChecks runs the user's checks once.
func (r *Runner) passChecks(ctx context.Context) error {
	if r.Checks == nil {
		return nil
	}

	err := r.Checks.Pass(ctx, func(reason string) { r.tell(Event{State: Waiting, Reason: reason}) })
	if err != nil && ctx.Err() == nil {
		return wait.Permanent(fmt.Errorf("%w: %w", errCanaryFailed, err))
	}

	return err
}

func (r *Runner) noteSoak(ctx context.Context, nodes []string, soak kubestate.Soak) error {
	for _, node := range nodes {
		if err := r.Kubernetes.NoteSoak(ctx, node, soak); err != nil {
			return err
		}
	}

	return nil
}

// confirmSoak judges the canary pool by the last observation, and has its machines asked again for the next one. have
// is the observation on which the soak was decided.
func (w *work) confirmSoak(watch *observer, have cluster.Snapshot) error {
	names := []string{""} // and Kubernetes

	for _, m := range w.want.Machines {
		if w.want.IsCanary(m) {
			names = append(names, m.Name)
		}
	}

	watch.outdate(names...)

	now, _, _ := watch.latest()
	reason, unknown := cluster.FailedSoak(w.want, have, now, w.runner.Policy)

	select {
	case <-w.ending:
		return wait.Permanent(errRunEnds)
	default:
	}

	switch {
	case reason != "":
		return wait.Permanent(fmt.Errorf("%w: %s", errCanaryFailed, reason))
	case unknown:
		return errUnconfirmed
	default:
		return nil
	}
}

// noteDueSoak records on the node of a canary machine that its soak is due. It comes before the change, so that no kill
// in between skips the soak.
func (r *Runner) noteDueSoak(ctx context.Context, change step.Step) error {
	node := step.SoaksOn(change)
	if node == "" {
		return nil
	}

	return r.noteSoak(ctx, []string{node}, kubestate.Soak{Due: true})
}
