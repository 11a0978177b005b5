package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// rolledOut waits until the pods of workloads are of their present templates and available,
// until that makes no progress for [Options.Await]: a DaemonSet that replaces one pod after
// the other, as kube-proxy does (Talos 1.13, k8stemplates/kube-proxy.go), takes the longer
// the more nodes there are. The error names what is missing and is never permanent: what is
// not there may still come.
func (c *Client) rolledOut(ctx context.Context, workloads []workload) error {
	bounded, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	idle := time.AfterFunc(c.await, func() { stop(fmt.Errorf("no progress within %s", c.await)) })
	defer idle.Stop()

	var behind []*rollout

	seen := progress{}

	err := wait.Until(bounded, syncPause, func(ctx context.Context) error {
		found, nearer, err := c.behind(ctx, workloads, seen)
		if nearer {
			idle.Reset(c.await)
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
		return fmt.Errorf("wait for Deployments and DaemonSets: %w%s", err, c.examine(ctx, behind))
	}
}

// progress keeps how near to its end each workload came, so that pods which come and go are
// none.
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

// behind returns the workloads that are not as they should be, whether any of all came
// nearer to that, and an error that says what is missing or cannot be known.
func (c *Client) behind(ctx context.Context, workloads []workload, seen progress) (behind []*rollout, nearer bool, err error) {
	var missing []string

	for _, w := range workloads {
		r, err := c.rollout(ctx, w)
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %s", w, oneLine(err)))

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
func (c *Client) examine(ctx context.Context, behind []*rollout) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), postmortem)
	defer cancel()

	var out strings.Builder

	for _, r := range behind {
		pods, err := c.podsOf(ctx, r)
		if err != nil {
			fmt.Fprintf(&out, "; %s: %s", r.of, oneLine(err))

			continue
		}

		kind, name, trouble := r.of.kind, r.of.name, ""

		for i := range pods {
			if text, container := troubleOf(&pods[i]); text != "" && (trouble == "" || container) {
				kind, name, trouble = "Pod", pods[i].Name, fmt.Sprintf("; pod %s/%s on node %s: %s", r.of.namespace, pods[i].Name, pods[i].Spec.NodeName, text)

				if container {
					break
				}
			}
		}

		fmt.Fprintf(&out, "%s; last event about %s %s: %s", trouble, kind, name, c.lastEvent(ctx, r.of.namespace, kind, name))
	}

	return out.String()
}

// troubleOf is why a pod is not ready, empty for one that is, and whether a container tells
// that.
func troubleOf(pod *corev1.Pod) (text string, container bool) {
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		// Others wait for an init container, which ends when it did its work.
		if s.State.Waiting != nil && s.State.Waiting.Reason == "PodInitializing" || s.State.Terminated != nil && s.State.Terminated.ExitCode == 0 {
			continue
		}

		if err := running(&s); err != nil {
			return err.Error(), true
		}
	}

	if pod.DeletionTimestamp != nil {
		return "the pod is being replaced", false
	}

	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReady} {
		c := condition(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
		if c != nil && c.Status != corev1.ConditionTrue {
			return fmt.Sprintf("the pod is not %s%s", strings.TrimPrefix(string(kind), "Pod"), because(c.Reason, c.Message)), false
		}
	}

	return "", false
}
