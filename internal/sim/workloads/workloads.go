// Package workloads reports DaemonSets and Deployments as rolled out, in place of the controllers and kubelets of a
// real cluster.
package workloads

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

// Report brings the status of every DaemonSet and Deployment up to date once. canPull
// says whether the registries have every image of a pod.
func Report(ctx context.Context, client kubernetes.Interface, canPull func(*corev1.PodSpec) bool) error {
	apps := client.AppsV1()

	daemonSets, err := apps.DaemonSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list daemon sets: %w", err)
	}

	deployments, err := apps.Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list deployments: %w", err)
	}

	if len(daemonSets.Items)+len(deployments.Items) == 0 {
		return nil
	}

	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}

	for _, set := range daemonSets.Items {
		before := set.Status
		set.Status = daemonSetStatus(&set, nodes.Items, canPull(&set.Spec.Template.Spec))

		if equality.Semantic.DeepEqual(before, set.Status) {
			continue
		}

		if _, err := apps.DaemonSets(set.Namespace).UpdateStatus(ctx, &set, metav1.UpdateOptions{}); outdated(err) != nil {
			return fmt.Errorf("update status of daemon set %s: %w", set.Name, err)
		}
	}

	for _, deployment := range deployments.Items {
		before := deployment.Status
		deployment.Status = deploymentStatus(&deployment, nodes.Items, canPull(&deployment.Spec.Template.Spec))

		if equality.Semantic.DeepEqual(before, deployment.Status) {
			continue
		}

		if _, err := apps.Deployments(deployment.Namespace).UpdateStatus(ctx, &deployment,
			metav1.UpdateOptions{}); outdated(err) != nil {
			return fmt.Errorf("update status of deployment %s: %w", deployment.Name, err)
		}
	}

	return nil
}

// outdated forgives an error that the next look takes care of: the object was changed or
// deleted after it was read.
func outdated(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}

	return err
}

// podCounts are the pods of a workload: how many it should have, how many of those are of
// its present template, and how many are ready.
type podCounts struct{ wanted, updated, ready int32 }

// rollOut is what becomes of a workload's pods. able is how many of the wanted can run
// where machines live; changed says that the template may be another one than before;
// canStart that a new pod finds its image and a place.
func (old podCounts) rollOut(wanted, able int32, changed, canStart bool) podCounts {
	next := podCounts{wanted: wanted}

	switch {
	case !changed && !canStart: // what runs has its image and its place
		next.updated, next.ready = min(old.updated, wanted), min(old.ready, able)
	case old.ready > 0 && !canStart: // the first replaced pod holds up the rest
		next.updated, next.ready = min(1, wanted), max(0, min(old.ready, able, wanted-1))
	case !canStart:
		next.updated = wanted
	case old.wanted == 0:
		next.updated, next.ready = wanted, able
	case changed: // but for pods of machines that are away
		next.updated, next.ready = able, able
	default:
		next.updated, next.ready = max(able, min(old.updated, wanted)), able
	}

	return next
}

func daemonSetStatus(set *appsv1.DaemonSet, nodes []corev1.Node, canPull bool) appsv1.DaemonSetStatus {
	var wanted, able int32

	for _, node := range nodes {
		if !suits(&node, &set.Spec.Template.Spec) {
			continue
		}

		wanted++

		if runs(&node, &set.Spec.Template.Spec) {
			able++
		}
	}

	status := set.Status
	old := podCounts{status.DesiredNumberScheduled, status.UpdatedNumberScheduled, status.NumberReady}
	pods := old.rollOut(wanted, able, status.ObservedGeneration != set.Generation, canPull)

	status.ObservedGeneration = set.Generation
	status.DesiredNumberScheduled, status.CurrentNumberScheduled = wanted, wanted
	status.UpdatedNumberScheduled = pods.updated
	status.NumberReady, status.NumberAvailable, status.NumberUnavailable = pods.ready, pods.ready, wanted-pods.ready

	return status
}

func deploymentStatus(deployment *appsv1.Deployment, nodes []corev1.Node, canPull bool) appsv1.DeploymentStatus {
	wanted := int32(1)
	if deployment.Spec.Replicas != nil {
		wanted = *deployment.Spec.Replicas
	}

	status := *deployment.Status.DeepCopy()
	old := podCounts{status.Replicas, status.UpdatedReplicas, status.ReadyReplicas}

	// Pods on cordoned nodes stay; new ones need a node that is not.
	able, open := int32(0), false

	for _, node := range nodes {
		switch {
		case !suits(&node, &deployment.Spec.Template.Spec) || !runs(&node, &deployment.Spec.Template.Spec):
		case !node.Spec.Unschedulable:
			able, open = wanted, true
		default:
			able = max(able, min(old.ready, wanted))
		}
	}

	pods := old.rollOut(wanted, able, status.ObservedGeneration != deployment.Generation, canPull && open)

	status.ObservedGeneration = deployment.Generation
	status.Replicas, status.UpdatedReplicas = wanted, pods.updated
	status.ReadyReplicas, status.AvailableReplicas, status.UnavailableReplicas = pods.ready, pods.ready, wanted-pods.ready
	status.Conditions = deploymentConditions(deployment, pods)

	return status
}

// deploymentConditions are those that a client waits for.
func deploymentConditions(deployment *appsv1.Deployment, pods podCounts) []appsv1.DeploymentCondition {
	available := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable",
		Message: "Deployment does not have minimum availability.",
	}
	if pods.ready >= pods.wanted-mayMiss(deployment, pods.wanted) {
		available.Status, available.Reason = corev1.ConditionTrue, "MinimumReplicasAvailable"
		available.Message = "Deployment has minimum availability."
	}

	progressing := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated",
		Message: "ReplicaSet is progressing.",
	}
	if pods.updated == pods.wanted && pods.ready == pods.wanted {
		progressing.Reason, progressing.Message = "NewReplicaSetAvailable", "ReplicaSet has successfully progressed."
	}

	conditions := []appsv1.DeploymentCondition{available, progressing}
	for i := range conditions {
		conditions[i].LastUpdateTime = metav1.Now()
		conditions[i].LastTransitionTime = conditions[i].LastUpdateTime

		for _, before := range deployment.Status.Conditions {
			switch {
			case before.Type != conditions[i].Type:
			case before.Status == conditions[i].Status && before.Reason == conditions[i].Reason:
				conditions[i] = before
			case before.Status == conditions[i].Status:
				conditions[i].LastTransitionTime = before.LastTransitionTime
			}
		}
	}

	return conditions
}

// mayMiss is how many pods of a Deployment may be missing: maxUnavailable, a quarter when
// it says nothing.
func mayMiss(deployment *appsv1.Deployment, wanted int32) int32 {
	limit := intstr.FromString("25%")
	if rolling := deployment.Spec.Strategy.RollingUpdate; rolling != nil && rolling.MaxUnavailable != nil {
		limit = *rolling.MaxUnavailable
	}

	missing, err := intstr.GetScaledValueFromIntOrPercent(&limit, int(wanted), false)
	if err != nil {
		return 0
	}

	return int32(missing) //nolint:gosec // at most the number of replicas
}

// suits reports whether a node takes a pod, be it cordoned or not.
func suits(node *corev1.Node, pod *corev1.PodSpec) bool {
	if !labels.SelectorFromSet(pod.NodeSelector).Matches(labels.Set(node.Labels)) {
		return false
	}

	return !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && taint.Key != corev1.TaintNodeUnschedulable &&
			!slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool { return tolerates(t, taint) })
	})
}

// tolerates leaves out the comparing operators, which are not on by default.
func tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	return (t.Effect == "" || t.Effect == taint.Effect) && (t.Key == "" || t.Key == taint.Key) &&
		(t.Operator == corev1.TolerationOpExists || t.Value == taint.Value)
}

// runs reports whether the pods of a node run: its kubelet lives, and has a network for them
// if they need one.
func runs(node *corev1.Node, pod *corev1.PodSpec) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady &&
			(c.Status == corev1.ConditionTrue || c.Status == corev1.ConditionFalse && pod.HostNetwork)
	})
}
