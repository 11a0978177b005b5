package upgrade

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/diagnose"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/nodes"
)

// workload names a Deployment or a DaemonSet.
type workload struct{ kind, namespace, name string }

func (w workload) String() string { return fmt.Sprintf("%s %s/%s", w.kind, w.namespace, w.name) }

const deploymentKind, daemonSetKind = "Deployment", "DaemonSet"

// isWorkload reports whether objects of a kind are waited for as workloads.
func isWorkload(kind schema.GroupKind) bool {
	return kind.Group == appsv1.GroupName && (kind.Kind == deploymentKind || kind.Kind == daemonSetKind)
}

// workloadsOf are the Deployments and DaemonSets among objects.
func workloadsOf(objects []map[string]any) []workload {
	var out []workload

	for _, o := range manifestsOf(objects) {
		if isWorkload(o.GroupVersionKind().GroupKind()) {
			out = append(out, workload{o.GetKind(), cmp.Or(o.GetNamespace(), metav1.NamespaceDefault), o.GetName()})
		}
	}

	return out
}

// rollout is how far a workload is.
type rollout struct {
	of       workload
	selector *metav1.LabelSelector
	epoch    epoch
	// outdated pods are to be replaced, unavailable ones to become available, and left ones
	// of an earlier template to end.
	outdated, unavailable, left int32
	// unmet describes what is missing; empty for a workload that is rolled out.
	unmet string
	// set is the DaemonSet.
	set *appsv1.DaemonSet
}

// epoch identifies one object, template and number of pods: to compare the counts of
// two says nothing about progress.
type epoch struct {
	uid                  types.UID
	generation, observed int64
	wanted               int32
}

// distance is how many changes of pods are still to come.
func (r *rollout) distance() int32 { return r.outdated + r.unavailable + r.left }

// rollout reads how far a workload is. What cannot run where no node is ready is not missing: a
// cluster that has no pod network yet is not held up by that. Nor is what a DaemonSet should
// have on nodes that are not ready.
func (u *Upgrade) rollout(ctx context.Context, w workload) (*rollout, error) {
	r, err := u.counts(ctx, w)
	if err != nil || r.unmet == "" {
		return r, err
	}

	nodes, err := u.nodesByReadiness(ctx)
	if err != nil {
		return nil, err
	}

	switch {
	case len(nodes.ready) == 0:
		r.unmet = ""
	case r.set == nil || len(nodes.others) == 0:
	default:
		reconciled, err := u.onReadyNodes(ctx, r, nodes)
		if err != nil {
			return nil, err
		}

		if reconciled {
			r.unmet = ""
		} else {
			r.unmet += "; nodes not ready, which can delay it: " + some(nodes.others)
		}
	}

	return r, nil
}

// counts reads the status of a workload.
func (u *Upgrade) counts(ctx context.Context, w workload) (*rollout, error) {
	var (
		set        *appsv1.DaemonSet
		deployment *appsv1.Deployment
	)

	var err error

	if w.kind == daemonSetKind {
		set, err = u.api.AppsV1().DaemonSets(w.namespace).Get(ctx, w.name, metav1.GetOptions{})
	} else {
		deployment, err = u.api.AppsV1().Deployments(w.namespace).Get(ctx, w.name, metav1.GetOptions{})
	}

	switch {
	case err != nil:
		return nil, err
	case set != nil && w.kind == daemonSetKind:
		return rolloutOfSet(w, set), nil
	default:
		return rolloutOfDeployment(w, deployment), nil
	}
}

func rolloutOfSet(w workload, set *appsv1.DaemonSet) *rollout {
	s := set.Status
	r := &rollout{
		of: w, selector: set.Spec.Selector, set: set,
		epoch:       epoch{set.UID, set.Generation, s.ObservedGeneration, s.DesiredNumberScheduled},
		unavailable: max(0, s.DesiredNumberScheduled-s.NumberAvailable),
	}

	// With the other strategy, OnDelete, another client replaces the pods at some time.
	if set.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType {
		r.outdated = max(0, s.DesiredNumberScheduled-s.UpdatedNumberScheduled)
	}

	r.describe()

	return r
}

func rolloutOfDeployment(w workload, d *appsv1.Deployment) *rollout {
	s, wanted := d.Status, replicas(d.Spec.Replicas)
	r := &rollout{
		of: w, selector: d.Spec.Selector,
		epoch:    epoch{d.UID, d.Generation, s.ObservedGeneration, wanted},
		outdated: max(0, wanted-s.UpdatedReplicas), unavailable: max(0, wanted-s.AvailableReplicas),
		left: max(0, s.Replicas-s.UpdatedReplicas),
	}

	r.describe()

	if r.unmet == "" {
		return r
	}

	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue ||
			c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse {
			r.unmet += diagnose.Because(c.Reason, c.Message)
		}
	}

	return r
}

// replicas is how many pods are wanted where nothing says otherwise, too.
func replicas(given *int32) int32 {
	if given == nil {
		return 1
	}

	return *given
}

// describe names what is missing.
func (r *rollout) describe() {
	if r.epoch.observed < r.epoch.generation {
		r.unmet = "its controller has not observed the change yet"

		return
	}

	var all []string

	if r.outdated > 0 {
		all = append(all, fmt.Sprintf("not updated: %d of %d pods", r.outdated, r.epoch.wanted))
	}

	if r.unavailable > 0 {
		all = append(all, fmt.Sprintf("not available: %d of %d pods", r.unavailable, r.epoch.wanted))
	}

	if r.left > 0 {
		all = append(all, fmt.Sprintf("not terminated yet: %d old pods", r.left))
	}

	r.unmet = strings.Join(all, ", ")
}

// onReadyNodes reports whether a DaemonSet misses nothing but on nodes that are not ready:
// no more than those can miss, and no pod on one that is ready.
func (u *Upgrade) onReadyNodes(ctx context.Context, r *rollout, by readiness) (bool, error) {
	if r.epoch.observed < r.epoch.generation || int(max(r.outdated, r.unavailable)) > len(by.others) {
		return false, nil
	}

	hash, err := u.revision(ctx, r.set)
	if err != nil {
		return false, err
	}

	pods, err := u.diagnosis.PodsOf(ctx, r.of.namespace, r.selector)
	if err != nil {
		return false, err
	}

	return !slices.ContainsFunc(pods, func(p corev1.Pod) bool {
		outdated := r.outdated > 0 && p.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] != hash

		return metav1.IsControlledBy(&p, r.set) && slices.Contains(by.ready, p.Spec.NodeName) &&
			(outdated || !nodes.PodReady(&p) || p.DeletionTimestamp != nil)
	}), nil
}

// revision is what the pods of a DaemonSet's present template are labeled with: the
// newest ControllerRevision's hash, which its controller writes before it says that it
// observed the template (Kubernetes 1.36, pkg/controller/daemon constructHistory).
func (u *Upgrade) revision(ctx context.Context, set *appsv1.DaemonSet) (string, error) {
	list, err := u.api.AppsV1().ControllerRevisions(set.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: metav1.FormatLabelSelector(set.Spec.Selector),
	})
	if err != nil {
		return "", fmt.Errorf("list its revisions: %w", err)
	}

	newest, hash := int64(-1), ""

	for i := range list.Items {
		if of := &list.Items[i]; metav1.IsControlledBy(of, set) && of.Revision > newest {
			newest, hash = of.Revision, of.Labels[appsv1.ControllerRevisionHashLabelKey]
		}
	}

	return hash, nil
}

// readiness are the names of the nodes that are ready, and of the others.
type readiness struct{ ready, others []string }

func (u *Upgrade) nodesByReadiness(ctx context.Context) (out readiness, err error) {
	var list *corev1.NodeList

	list, err = u.api.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return out, fmt.Errorf("list nodes: %w", err)
	}

	for i := range list.Items {
		if n := nodes.Of(&list.Items[i]); n.Ready {
			out.ready = append(out.ready, n.Name)
		} else {
			out.others = append(out.others, n.Name)
		}
	}

	return out, nil
}

// some names a few of many.
func some(names []string) string {
	const few = 5

	if len(names) <= few {
		return strings.Join(names, ", ")
	}

	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
