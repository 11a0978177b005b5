package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// weight orders the troubles of pods: what is nearest to a cause comes last.
type weight int

const (
	fine weight = iota
	leaving
	unready
	beginning
	unscheduled
	failing
)

// podTrouble is why a pod is not ready, or did not do its work.
type podTrouble struct {
	weight weight
	text   string
	// container whose log says more, empty when none does, and whether that is the log of its last
	// run.
	container string
	previous  bool
}

// worst is the pod of several that is nearest to a cause, the first of equals; nil when all are fine.
func worst(pods []corev1.Pod) (*corev1.Pod, podTrouble) {
	var (
		pod   *corev1.Pod
		found podTrouble
	)

	for i := range pods {
		if trouble := troubleOf(&pods[i]); trouble.weight > found.weight {
			pod, found = &pods[i], trouble
		}
	}

	return pod, found
}

// troubleOf says what is the matter with a pod.
func troubleOf(pod *corev1.Pod) podTrouble {
	scheduled, ready := podCondition(pod, corev1.PodScheduled), podCondition(pod, corev1.PodReady)
	container := containerTrouble(pod)

	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		return podTrouble{}
	case pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "":
		// Such as Evicted: the kubelet ended its containers.
		return podTrouble{weight: failing, text: "it failed" + because(pod.Status.Reason, pod.Status.Message)}
	case container.weight == failing:
		return container
	case pod.Status.Phase == corev1.PodFailed:
		return podTrouble{weight: failing, text: "it failed" + because("", pod.Status.Message)}
	case pod.DeletionTimestamp != nil:
		return podTrouble{weight: leaving, text: "the pod is being replaced"}
	case scheduled != nil && scheduled.Status == corev1.ConditionFalse:
		return podTrouble{weight: unscheduled, text: "it has no node" + because(scheduled.Reason, scheduled.Message)}
	case container.weight != fine:
		return container
	case pod.Status.Phase == corev1.PodPending:
		return podTrouble{weight: beginning, text: "it has not begun" + because(pod.Status.Reason, pod.Status.Message)}
	case ready != nil && ready.Status != corev1.ConditionTrue:
		trouble := podTrouble{weight: unready, text: "the pod is not ready" + because(ready.Reason, ready.Message)}

		if s := condition(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return !s.Ready }); s != nil && s.State.Running != nil {
			trouble.text, trouble.container = trouble.text+lastEnd(s), s.Name
		}

		return trouble
	default:
		return podTrouble{}
	}
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	return condition(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
}

// containerTrouble is that of the container of a pod that is nearest to a cause.
func containerTrouble(pod *corev1.Pod) (found podTrouble) {
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

		trouble := podTrouble{weight: failing, text: err.Error()}

		switch {
		case waits != nil && waits.Reason == "ContainerCreating" && last == nil:
			trouble.weight = beginning
		case waits != nil && last != nil && last.Message == "":
			trouble.container, trouble.previous = s.Name, true
		case ended != nil && ended.Message == "":
			// The kubelet puts the end of the log into the message of a container that asks for it.
			trouble.container = s.Name
		}

		if trouble.weight > found.weight {
			found = trouble
		}
	}

	return found
}

// reportOn says what is the matter with a pod, with the last event about it and the end of the log of
// the container that is the cause. What the Secrets contain that the pod is given is taken out,
// because programs log what they were given.
func (c *Client) reportOn(ctx context.Context, pod *corev1.Pod, trouble podTrouble) string {
	mask, err := c.maskOf(ctx, pod)
	if err != nil {
		return "why is not told, because it may have parts of a Secret: " + oneLine(err)
	}

	text := fmt.Sprintf("%s; last event: %s", lastLines(mask(trouble.text)), mask(c.lastEvent(ctx, pod.Namespace, podKind, pod.Name)))
	if trouble.container == "" {
		return text
	}

	log, err := c.logOf(ctx, pod, trouble)

	switch log = mask(log); {
	case err != nil:
		return text + "; its log cannot be read: " + oneLine(err)
	case strings.TrimSpace(log) == "":
		return text + "; its log is empty"
	default:
		return text + "; last log lines: " + lastLines(log)
	}
}
