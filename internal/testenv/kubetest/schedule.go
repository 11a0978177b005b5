package kubetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/klog/v2"
)

// schedule binds a pod to the node with the fewest pods that takes it, or says why there is none. Resources, and
// affinities but those to nodes, are not looked at. What was chosen counts at once, as it does for the scheduler
// (Kubernetes 1.36, scheduler/schedule_one.go assume), and stays chosen: the volumes of a pod are all on one node.
func (k *kubelets) schedule(ctx context.Context, pod *corev1.Pod, nodes []*corev1.Node) error {
	var (
		best  *corev1.Node
		fewer int
	)

	against, needs, chosen := map[string]int{}, k.needsOf(pod), k.runOf(pod)

	for _, node := range nodes {
		if reason := k.unsuited(pod, node, needs); reason != "" {
			against[reason]++

			continue
		}

		n := k.podsOn(node)
		if best == nil || best.Name != chosen.node && (n < fewer || node.Name == chosen.node) {
			best, fewer = node, n
		}
	}

	if best == nil {
		return k.refuse(ctx, pod, len(nodes), against)
	}

	chosen.node = best.Name

	if len(needs.delayed) > 0 {
		return k.choose(ctx, needs.delayed, best)
	}

	return k.api.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: best.Name},
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
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message,
		LastTransitionTime: metav1.Now(),
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

	return len(slices.DeleteFunc(pods,
		func(pod *corev1.Pod) bool { return cmp.Or(pod.Spec.NodeName, k.runOf(pod).node) != node.Name }))
}

// unsuited says why a node does not take a pod, empty when it does.
func (k *kubelets) unsuited(pod *corev1.Pod, node *corev1.Node, needs needs) string {
	switch {
	case needs.unmet != "":
		return needs.unmet
	case !labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(node.Labels)), !wanted(pod, node):
		return "node(s) didn't match Pod's node affinity/selector"
	case !needs.usableOn(node):
		return "node(s) didn't match PersistentVolume's node affinity"
	}

	for _, taint := range taints(node) {
		if !slices.ContainsFunc(pod.Spec.Tolerations,
			func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Background(), &taint, false) }) {
			return "node(s) had untolerated taint(s)"
		}
	}

	return ""
}

// taints that keep pods away. A node that is not ready has one whether the simulator, which has no
// node controllers, shows it or not.
func taints(node *corev1.Node) []corev1.Taint {
	list := slices.DeleteFunc(slices.Clone(node.Spec.Taints),
		func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule })

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

	return selects(required, node)
}

func selects(selector *corev1.NodeSelector, node *corev1.Node) bool {
	return slices.ContainsFunc(selector.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return all(term.MatchExpressions, node.Labels) &&
			all(term.MatchFields, map[string]string{metav1.ObjectNameField: node.Name})
	})
}

var operators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn,
	corev1.NodeSelectorOpExists:       selection.Exists,
	corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist, corev1.NodeSelectorOpGt: selection.GreaterThan,
	corev1.NodeSelectorOpLt: selection.LessThan,
}

func all(requirements []corev1.NodeSelectorRequirement, values map[string]string) bool {
	return !slices.ContainsFunc(requirements, func(r corev1.NodeSelectorRequirement) bool {
		requirement, err := labels.NewRequirement(r.Key, operators[r.Operator], r.Values)

		return err != nil || !requirement.Matches(labels.Set(values))
	})
}
