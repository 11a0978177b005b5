package addontest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/klog/v2"
)

// schedule binds a pod to the node with the fewest pods that takes it, or says why there is
// none. Resources, and affinities but those to nodes, are not looked at.
func (k *kubelets) schedule(ctx context.Context, pod *corev1.Pod, nodes []*corev1.Node) error {
	var (
		best  *corev1.Node
		fewer int
	)

	against := map[string]int{}

	for _, node := range nodes {
		if reason := k.unsuited(pod, node); reason != "" {
			against[reason]++

			continue
		}

		if n := k.podsOn(node); best == nil || n < fewer {
			best, fewer = node, n
		}
	}

	if best == nil {
		return k.refuse(ctx, pod, len(nodes), against)
	}

	return k.api.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: best.Name},
	}, metav1.CreateOptions{})
}

// refuse says why a pod has no node, as the scheduler does (Kubernetes 1.36,
// scheduler/framework/types.go FitError).
func (k *kubelets) refuse(ctx context.Context, pod *corev1.Pod, nodes int, against map[string]int) error {
	reasons := make([]string, 0, len(against))
	for reason, n := range against {
		reasons = append(reasons, fmt.Sprintf("%d %s", n, reason))
	}

	slices.Sort(reasons)

	message := fmt.Sprintf("0/%d nodes are available: %s.", nodes, strings.Join(reasons, ", "))
	k.tell(ctx, pod, k.runOf(pod), warning{source: "default-scheduler", reason: "FailedScheduling", message: message})

	if c := conditionOf(pod, corev1.PodScheduled); c != nil && c.Message == message {
		return nil
	}

	changed := pod.DeepCopy()
	setCondition(&changed.Status, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message, LastTransitionTime: metav1.Now(),
	})

	_, err := k.api.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})

	return err
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}

	return nil
}

func (k *kubelets) podsOn(node *corev1.Node) int {
	pods, err := k.pods.List(labels.Everything())
	if err != nil {
		return 0
	}

	return len(slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != node.Name }))
}

// unsuited says why a node does not take a pod, empty when it does.
func (k *kubelets) unsuited(pod *corev1.Pod, node *corev1.Node) string {
	switch {
	case !k.bound(pod):
		return "pod has unbound immediate PersistentVolumeClaims"
	case !labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(node.Labels)), !wanted(pod, node):
		return "node(s) didn't match Pod's node affinity/selector"
	}

	for _, taint := range taints(node) {
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Background(), &taint, false) }) {
			return "node(s) had untolerated taint(s)"
		}
	}

	return ""
}

// taints that keep pods away. A node that is not ready has one whether the simulator, which has no
// node controllers, shows it or not.
func taints(node *corev1.Node) []corev1.Taint {
	list := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule })

	if node.Spec.Unschedulable {
		list = append(list, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}

	if !ready(node) {
		list = append(list, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	}

	return list
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// networked says whether a pod has the network that it needs.
func networked(node *corev1.Node, pod *corev1.Pod) bool {
	return pod.Spec.HostNetwork || ready(node) || scripted(pod, CNIAnnotation)
}

// wanted says whether a pod's required affinity to nodes, which is how the pods of DaemonSets
// get to theirs, matches one.
func wanted(pod *corev1.Pod, node *corev1.Node) bool {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return true
	}

	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return true
	}

	return slices.ContainsFunc(required.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return all(term.MatchExpressions, node.Labels) && all(term.MatchFields, map[string]string{metav1.ObjectNameField: node.Name})
	})
}

var operators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn, corev1.NodeSelectorOpExists: selection.Exists,
	corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist, corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
}

func all(requirements []corev1.NodeSelectorRequirement, values map[string]string) bool {
	return !slices.ContainsFunc(requirements, func(r corev1.NodeSelectorRequirement) bool {
		requirement, err := labels.NewRequirement(r.Key, operators[r.Operator], r.Values)

		return err != nil || !requirement.Matches(labels.Set(values))
	})
}

// bound says whether the claims of a pod are.
func (k *kubelets) bound(pod *corev1.Pod) bool {
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}

		claim, err := k.claims.PersistentVolumeClaims(pod.Namespace).Get(volume.PersistentVolumeClaim.ClaimName)
		if err != nil || claim.Status.Phase != corev1.ClaimBound {
			return false
		}
	}

	return true
}

// provision makes a volume for each claim that waits for one, to which the controllers bind it.
func (k *kubelets) provision(ctx context.Context) {
	claims, err := k.claims.List(labels.Everything())
	if err != nil {
		k.log("list claims: %v", err)
	}

	for _, claim := range claims {
		if _, hangs := claim.Annotations[HangAnnotation]; hangs || claim.Status.Phase == corev1.ClaimBound || !claim.DeletionTimestamp.IsZero() {
			continue
		}

		name := "pvc-" + string(claim.UID)
		_, err := k.api.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeSpec{
				Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
				AccessModes:                   claim.Spec.AccessModes,
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				StorageClassName:              deref(claim.Spec.StorageClassName),
				VolumeMode:                    claim.Spec.VolumeMode,
				ClaimRef: &corev1.ObjectReference{
					APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
				},
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/local/" + name}},
			},
		}, metav1.CreateOptions{})

		if err != nil && !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
			k.log("provision for %s/%s: %v", claim.Namespace, claim.Name, err)
		}
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}

	return *s
}
