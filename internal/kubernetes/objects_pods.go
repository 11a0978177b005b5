package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgo "k8s.io/client-go/kubernetes"
)

// logLines are how many lines of a log are told.
const logLines = 10

// JobTroubles says of each pod of a Job that does not run, and has not succeeded, why: what its
// container waits for or how it ended, with the end of its log, and the last event about it. A Job
// without pods has the last event about itself. It only reads, and what it cannot read it says.
func (c *Client) JobTroubles(ctx context.Context, namespace, job string) ([]string, error) {
	var list *corev1.PodList

	err := c.do(ctx, func(ctx context.Context, api clientgo.Interface) (err error) {
		// The label is the Job controller's (Kubernetes 1.27 and newer, batch/v1 JobNameLabel).
		list, err = api.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + job})

		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the pods of Job %s/%s: %w", namespace, job, err)
	}

	if len(list.Items) == 0 {
		return []string{fmt.Sprintf("Job %s has no pod; last event: %s", job, c.lastEvent(ctx, namespace, "Job", job))}, nil
	}

	var troubles []string

	for i := range list.Items {
		pod := &list.Items[i]

		if reason := podTrouble(pod); reason != "" {
			troubles = append(troubles, fmt.Sprintf("pod %s: %s; last event: %s", pod.Name, c.withLog(ctx, pod, reason),
				c.lastEvent(ctx, namespace, "Pod", pod.Name)))
		}
	}

	return troubles, nil
}

// podTrouble says why a pod does not run, empty for one that does or that succeeded.
func podTrouble(pod *corev1.Pod) string {
	if pod.Status.Phase == corev1.PodSucceeded {
		return ""
	}

	for i := range pod.Status.ContainerStatuses {
		if err := running(&pod.Status.ContainerStatuses[i]); err != nil {
			return err.Error()
		}
	}

	scheduled := condition(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })

	switch {
	case scheduled != nil && scheduled.Status == corev1.ConditionFalse:
		return "it has no node" + because(scheduled.Reason, scheduled.Message)
	case pod.Status.Phase == corev1.PodPending:
		return "it has not begun" + because(pod.Status.Reason, pod.Status.Message)
	case pod.Status.Phase == corev1.PodFailed:
		return "it failed" + because(pod.Status.Reason, pod.Status.Message)
	default:
		return ""
	}
}

// withLog adds the end of the log to a reason, unless it is in it already: the kubelet puts it
// into the status of a container that asks for it.
func (c *Client) withLog(ctx context.Context, pod *corev1.Pod, reason string) string {
	ended := slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.State.Terminated != nil && s.State.Terminated.Message == ""
	})
	if !ended {
		return reason
	}

	var log []byte

	err := c.do(ctx, func(ctx context.Context, api clientgo.Interface) (err error) {
		log, err = api.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: new(int64(logLines))}).DoRaw(ctx)

		return err
	})
	if err != nil {
		return reason + "; its log cannot be read: " + oneLine(err)
	}

	return reason + "; its log ends with: " + strings.TrimSpace(string(log))
}
