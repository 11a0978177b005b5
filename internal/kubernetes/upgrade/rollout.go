package upgrade

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/diagnose"
)

// rolledOut waits until the pods of workloads are of their present templates and available,
// until that makes no progress for [api.Options.Await]: a DaemonSet that replaces one pod after
// the other, as kube-proxy does (Talos 1.13, k8stemplates/kube-proxy.go), takes the longer
// the more nodes there are. The error names what is missing and is never permanent: what is
// not there may still come.
func (u *Upgrade) rolledOut(ctx context.Context, workloads []workload) error {
	bounded, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	idle := time.AfterFunc(u.api.Options.Await, func() { stop(fmt.Errorf("no progress within %s", u.api.Options.Await)) })
	defer idle.Stop()

	var behind []*rollout

	seen := progress{}

	err := u.api.Until(bounded, func(ctx context.Context) error {
		found, nearer, err := u.behind(ctx, workloads, seen)
		if nearer {
			idle.Reset(u.api.Options.Await)
		}

		if len(found) > 0 {
			behind = found
		}

		return err
	})

	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return fmt.Errorf("wait for Deployments and DaemonSets: %w", err)
	default:
		return fmt.Errorf("wait for Deployments and DaemonSets: %w%s", err, u.examine(ctx, behind))
	}
}

// progress records how near to its end each workload came, so that pods which come and go do not count as
// progress.
type progress map[workload]nearest

type nearest struct {
	epoch    epoch
	distance int32
}

// note reports whether a workload is nearer to its end than ever.
func (p progress) note(r *rollout) bool {
	before, known := p[r.of]
	if known && before.epoch == r.epoch && r.distance() >= before.distance {
		return false
	}

	p[r.of] = nearest{r.epoch, r.distance()}

	return true
}

// behind returns the workloads that are not rolled out, whether any made progress, and an error that names what is
// missing or unknown.
func (u *Upgrade) behind(
	ctx context.Context, workloads []workload, seen progress,
) (behind []*rollout, nearer bool, err error) {
	var missing []string

	for _, w := range workloads {
		r, err := u.rollout(ctx, w)
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %s", w, api.OneLine(err)))

			continue
		}

		nearer = seen.note(r) || nearer

		if r.unmet != "" {
			behind = append(behind, r)
			missing = append(missing, fmt.Sprintf("%s: %s", w, r.unmet))
		}
	}

	if len(missing) > 0 {
		err = errors.New(strings.Join(missing, "; "))
	}

	return behind, nearer, err
}

// examine says for each workload what is the matter with one of its pods. It has time of its
// own, since that of ctx may be up.
func (u *Upgrade) examine(ctx context.Context, behind []*rollout) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastEventTimeout)
	defer cancel()

	var out strings.Builder

	for _, r := range behind {
		pods, err := u.diagnosis.PodsOf(ctx, r.of.namespace, r.selector)
		if err != nil {
			fmt.Fprintf(&out, "; %s: %s", r.of, api.OneLine(err))

			continue
		}

		kind, name := r.of.kind, r.of.name

		if pod, reason := diagnose.Worst(pods); pod != nil {
			kind, name = "Pod", pod.Name
			fmt.Fprintf(&out, "; pod %s/%s on node %s: %s", pod.Namespace, pod.Name, pod.Spec.NodeName, reason)
		}

		fmt.Fprintf(&out, "; last event about %s %s: %s", kind, name, u.diagnosis.LastEvent(ctx, r.of.namespace, kind, name))
	}

	return out.String()
}
