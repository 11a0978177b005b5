package diagnose

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

// weight orders the problems of pods: what is nearest to a cause comes last.
type weight int

const (
	fine weight = iota
	leaving
	unready
	beginning
	unscheduled
	failing
)

// worst is the pod of several that is nearest to a cause, the first of equals; nil when all are fine.
func worst(pods []corev1.Pod) (*corev1.Pod, podProblem) {
	var (
		pod   *corev1.Pod
		found podProblem
	)

	for i := range pods {
		if problem := problemOf(&pods[i]); problem.weight > found.weight {
			pod, found = &pods[i], problem
		}
	}

	return pod, found
}

// Worst is the pod nearest to the cause, and its problem.
func Worst(pods []corev1.Pod) (*corev1.Pod, string) {
	pod, problem := worst(pods)

	return pod, problem.text
}

// UnreadyPods are the pods of all namespaces that have a problem, with its reason.
func (d *Diagnosis) UnreadyPods(ctx context.Context) ([]NotReady, error) {
	list, err := d.api.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", api.WithoutURL(err))
	}

	var found []NotReady

	for i := range list.Items {
		pod := &list.Items[i]

		problem := problemOf(pod)
		if problem.weight == fine {
			continue
		}

		mask, err := d.maskOf(ctx, pod)
		if err != nil {
			return found, err
		}

		found = append(found, NotReady{
			Object: objects.Reference{APIVersion: "v1", Kind: podKind, Namespace: pod.Namespace, Name: pod.Name},
			Reason: lastLines(mask(problem.text))})
	}

	return found, nil
}

// problemOf returns the problem of a pod.
func problemOf(pod *corev1.Pod) podProblem {
	scheduled, ready := podCondition(pod, corev1.PodScheduled), podCondition(pod, corev1.PodReady)
	container := containerProblem(pod)

	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		return podProblem{}
	case pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "":
		// Such as Evicted: the kubelet ended its containers.
		return podProblem{weight: failing, text: "failed" + Because(pod.Status.Reason, pod.Status.Message)}
	case container.weight == failing:
		return container
	case pod.Status.Phase == corev1.PodFailed:
		return podProblem{weight: failing, text: "failed" + Because("", pod.Status.Message)}
	case pod.DeletionTimestamp != nil:
		return podProblem{weight: leaving, text: "the pod is being replaced"}
	case scheduled != nil && scheduled.Status == corev1.ConditionFalse:
		return podProblem{weight: unscheduled, text: "not scheduled" + Because(scheduled.Reason, scheduled.Message)}
	case container.weight != fine:
		return container
	case pod.Status.Phase == corev1.PodPending:
		return podProblem{weight: beginning, text: "not started" + Because(pod.Status.Reason, pod.Status.Message)}
	case ready != nil && ready.Status != corev1.ConditionTrue:
		problem := podProblem{weight: unready, text: "the pod is not ready" + Because(ready.Reason, ready.Message)}

		if s := condition(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return !s.Ready }); s != nil &&
			s.State.Running != nil {
			problem.text, problem.container = problem.text+lastEnd(s), s.Name
		}

		return problem
	default:
		return podProblem{}
	}
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	return condition(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
}

// containerProblem is the problem of the pod's container nearest to a cause.
func containerProblem(pod *corev1.Pod) (found podProblem) {
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waits, ended, last := s.State.Waiting, s.State.Terminated, s.LastTerminationState.Terminated

		// Others wait for an init container, which ends when it did its work.
		if waits != nil && waits.Reason == "PodInitializing" || ended != nil && ended.ExitCode == 0 {
			continue
		}

		err := running(&s)
		if err == nil {
			continue
		}

		problem := podProblem{weight: failing, text: err.Error()}

		switch {
		case waits != nil && waits.Reason == "ContainerCreating" && last == nil:
			problem.weight = beginning
		case waits != nil && last != nil && last.Message == "":
			problem.container, problem.previous = s.Name, true
		case ended != nil && ended.Message == "":
			// On request, the kubelet puts the end of the log into the message of a container.
			problem.container = s.Name
		}

		if problem.weight > found.weight {
			found = problem
		}
	}

	return found
}
