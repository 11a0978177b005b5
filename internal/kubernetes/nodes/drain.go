package nodes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubectl/pkg/drain"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

const (
	// forceBound is how long pods that were deleted may take to end, unless the policy
	// gives less; those with the usual grace period of 30 s do.
	forceBound = time.Minute
	// overdue is how long after the end of its grace period a pod that still exists
	// does not count any more: its kubelet is dead, or cannot get rid of it.
	overdue = time.Minute
)

var errDrainTime = errors.New("timed out")

// Drain evicts the pods of a node and returns once they are gone. Like talosctl, it takes what kubectl drain takes
// with --force, --ignore-daemonsets and --delete-emptydir-data: everything but pods of daemon sets, mirror pods,
// and pods whose deletion is a minute overdue. No eviction violates a PodDisruptionBudget. Unless
// policy.IgnoreVolumes, Drain also waits until no volumes are attached to the node but those of pods that stay.
//
// When pods or volumes are left after policy.Timeout (zero: when ctx ends), policy.OnTimeout decides. DrainFail
// returns a permanent error that names them and the obstacle. DrainForce deletes the pods, and gives them and their
// volumes policy.Timeout once more, at most a minute. DrainSkip leaves them.
//
// report receives what a drain waits for after the pods are gone, and what it leaves behind.
//
// Every other error may be retried: an API that does not answer until the time expires, and the cause of ctx when
// it ends. Destructive for pods, safe to repeat. Drain does not cordon the node, nor uncordon it after an error.
func (n *Nodes) Drain(
	ctx context.Context, node string, policy cluster.DrainPolicy, report func(string),
) error {
	d := &draining{api: n.api, node: node, policy: policy, report: report, refused: map[string]error{},
		volumes: map[string]*corev1.PersistentVolume{}}

	if err := d.run(ctx); err != nil {
		return fmt.Errorf("drain node %s: %w", node, err)
	}

	return nil
}

// draining is one drain. It has no goroutines and does not outlive its context. kubectl's own loop does, and it
// hides why a pod is not evicted.
type draining struct {
	api    *api.Client
	node   string
	policy cluster.DrainPolicy
	report func(string)
	// refused is why a pod was not evicted the last time, by namespace/name.
	refused map[string]error
	// attachments are those of the node that were left the last time.
	attachments []storagev1.VolumeAttachment
	// volumes are those that were looked up, by their names. Their drivers and claims do not change.
	volumes map[string]*corev1.PersistentVolume
	// reported is true once the report had the wait for volumes.
	reported bool
}

func (d *draining) run(ctx context.Context) error {
	bounded := ctx

	if d.policy.Timeout > 0 {
		var cancel context.CancelFunc

		bounded, cancel = context.WithTimeoutCause(ctx, d.policy.Timeout, errDrainTime)
		defer cancel()
	}

	err := d.api.Until(bounded, func(ctx context.Context) error { return d.round(ctx, d.evict) })
	if !errors.Is(err, errDrainTime) {
		return err
	}

	left, err := d.pods(ctx)

	switch {
	case err != nil:
		return err
	case len(left) == 0:
		return d.volumesLeft(ctx)
	}

	switch d.policy.OnTimeout {
	case cluster.DrainForce:
		return d.force(ctx)
	case cluster.DrainSkip:
		d.goOn(d.describe(ctx, left))

		return nil
	default:
		return wait.Permanent(fmt.Errorf("timed out after %s: %s", d.policy.Timeout, d.describe(ctx, left)))
	}
}

// round calls remove for each pod that is not terminating yet. It is nil when the node has neither pods nor volumes.
func (d *draining) round(ctx context.Context, remove func(context.Context, *corev1.Pod) error) error {
	pods, err := d.pods(ctx)
	if err != nil {
		return err
	}

	for i := range pods {
		pod := &pods[i]
		if !pod.DeletionTimestamp.IsZero() {
			continue
		}

		err := remove(ctx, pod)

		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case apierrors.IsNotFound(err), apierrors.IsConflict(err):
			// It is gone; a conflict is about a successor of the same name.
		case err != nil:
			d.refused[nameOf(pod)] = api.WithoutURL(err)
		}
	}

	if len(pods) > 0 {
		return fmt.Errorf("%d pods remain", len(pods))
	}

	return d.detached(ctx)
}

// pods lists the pods that a drain removes and that still exist.
func (d *draining) pods(ctx context.Context) ([]corev1.Pod, error) {
	filter := drain.Helper{
		Ctx: ctx, Client: d.api, Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
		GracePeriodSeconds: -1, SkipWaitForDeleteTimeoutSeconds: int(overdue.Seconds()),
	}

	list, errs := filter.GetPodsForDeletion(d.node)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("list its pods: %w", api.WithoutURL(err))
	}

	return list.Pods(), nil
}

func (d *draining) evict(ctx context.Context, pod *corev1.Pod) error {
	return d.api.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
	})
}

func (d *draining) remove(ctx context.Context, pod *corev1.Pod) error {
	return d.api.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewPreconditionDeleteOptions(string(pod.UID)))
}

// force deletes the pods that are left. Those that only take long to end are left to
// the disruption.
func (d *draining) force(ctx context.Context) error {
	d.refused = map[string]error{}

	bounded, cancel := context.WithTimeoutCause(ctx, min(d.policy.Timeout, forceBound), errDrainTime)
	defer cancel()

	err := d.api.Until(bounded, func(ctx context.Context) error { return d.round(ctx, d.remove) })
	if !errors.Is(err, errDrainTime) {
		return err
	}

	left, err := d.pods(ctx)

	switch {
	case err != nil:
		return err
	case len(left) == 0:
		return d.volumesLeft(ctx)
	}

	for i := range left {
		if left[i].DeletionTimestamp.IsZero() {
			return wait.Permanent(fmt.Errorf("after a forced deletion: %s", d.describe(ctx, left)))
		}
	}

	d.goOn(d.describe(ctx, left))

	return nil
}

// goOn reports what is left when the drain ends in spite of it.
func (d *draining) goOn(left string) {
	d.report(fmt.Sprintf("drain node %s: continuing although %s", d.node, left))
}

// describe names pods and why each is still there.
func (d *draining) describe(ctx context.Context, pods []corev1.Pod) string {
	budgets := map[string][]policyv1.PodDisruptionBudget{}
	names := make([]string, 0, len(pods))

	for i := range pods {
		names = append(names, nameOf(&pods[i])+" ("+d.reason(ctx, &pods[i], budgets)+")")
	}

	if len(names) == 1 {
		return "1 pod remains: " + names[0]
	}

	return fmt.Sprintf("%d pods remain: %s", len(names), strings.Join(names, ", "))
}

// reason returns why a pod is still there. The API names the blocking budget only in
// prose, so it is looked up.
func (d *draining) reason(
	ctx context.Context, pod *corev1.Pod, budgets map[string][]policyv1.PodDisruptionBudget,
) string {
	err := d.refused[nameOf(pod)]

	switch {
	case !pod.DeletionTimestamp.IsZero():
		return "terminating"
	case err == nil:
		return "not evicted yet"
	case !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause):
		return api.OneLine(err)
	}

	if _, known := budgets[pod.Namespace]; !known {
		list, listErr := d.budgets(ctx, pod.Namespace)
		if listErr != nil {
			return api.OneLine(errors.Join(err, listErr))
		}

		budgets[pod.Namespace] = list
	}

	var blocking []string

	for i := range budgets[pod.Namespace] {
		if b := &budgets[pod.Namespace][i]; covers(b, pod) {
			blocking = append(blocking, describeBudget(b))
		}
	}

	if len(blocking) == 0 {
		return api.OneLine(err)
	}

	return strings.Join(blocking, ", ")
}

func (d *draining) budgets(ctx context.Context, namespace string) ([]policyv1.PodDisruptionBudget, error) {
	list, err := d.api.PolicyV1().PodDisruptionBudgets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list PodDisruptionBudgets: %w", api.WithoutURL(err))
	}

	return list.Items, nil
}

func covers(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)

	// The API server accepts no invalid selector.
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}

func describeBudget(b *policyv1.PodDisruptionBudget) string {
	return fmt.Sprintf("PodDisruptionBudget %s/%s: allowed disruptions %d, %d of %d healthy, %d needed",
		b.Namespace, b.Name, b.Status.DisruptionsAllowed, b.Status.CurrentHealthy, b.Status.ExpectedPods,
		b.Status.DesiredHealthy)
}

func nameOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }
