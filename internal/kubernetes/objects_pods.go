package kubernetes

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgo "k8s.io/client-go/kubernetes"
)

const (
	// logLines are how many lines of a log are told, and logBytes how much of them.
	logLines = 10
	logBytes = 4 << 10
	// secretBytes and wordBytes are how long the content of a Secret, or a word in it, must be to
	// be taken out of what is told: what is shorter is in many texts and says little.
	secretBytes = 8
	wordBytes   = 16
)

// JobTroubles says of each pod of a Job that does not run, and has not succeeded, why: what its
// container waits for or how it ended, with the end of its log, and the last event about it. A Job
// without pods has the last event about itself. It only reads, and what it cannot read it says.
// What the Secrets contain that a pod is given is taken out, because programs log what they
// were given.
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
			troubles = append(troubles, fmt.Sprintf("pod %s: %s; last event: %s", pod.Name, c.withoutSecrets(ctx, pod, c.withLog(ctx, pod, reason)),
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
		log, err = api.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
			TailLines: new(int64(logLines)), LimitBytes: new(int64(logBytes)),
		}).DoRaw(ctx)

		return err
	})
	if err != nil {
		return reason + "; its log cannot be read: " + oneLine(err)
	}

	if len(log) >= logBytes {
		// It was cut, maybe in the midst of what must not be told.
		log = log[:bytes.LastIndexAny(log, " \t\n")+1]
	}

	return reason + "; its log ends with: " + strings.TrimSpace(string(log))
}

// withoutSecrets takes out of a text what the Secrets contain that a pod is given. Without them
// the text is not told.
func (c *Client) withoutSecrets(ctx context.Context, pod *corev1.Pod, text string) string {
	var masks []string

	for _, name := range secretsOf(pod) {
		var secret *corev1.Secret

		err := c.do(ctx, func(ctx context.Context, api clientgo.Interface) (err error) {
			secret, err = api.CoreV1().Secrets(pod.Namespace).Get(ctx, name, metav1.GetOptions{})

			return err
		})

		switch {
		case apierrors.IsNotFound(err):
			// A pod waits for a Secret that is missing, which its reason says.
		case err != nil:
			return fmt.Sprintf("why is not told, because it may have parts of Secret %s, which cannot be read: %s", name, oneLine(err))
		default:
			masks = append(masks, masksOf(secret)...)
		}
	}

	// The longest first: one may be a part of another.
	slices.SortFunc(masks, func(a, b string) int { return len(b) - len(a) })

	for _, mask := range masks {
		text = strings.ReplaceAll(text, mask, "(sensitive)")
	}

	return text
}

// secretsOf are the names of the Secrets that the containers of a pod are given, each once.
func secretsOf(pod *corev1.Pod) []string {
	var names []string

	for i := range pod.Spec.Containers {
		for _, from := range pod.Spec.Containers[i].EnvFrom {
			if from.SecretRef != nil {
				names = append(names, from.SecretRef.Name)
			}
		}

		for _, variable := range pod.Spec.Containers[i].Env {
			if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
				names = append(names, variable.ValueFrom.SecretKeyRef.Name)
			}
		}
	}

	for i := range pod.Spec.Volumes {
		if volume := pod.Spec.Volumes[i].Secret; volume != nil {
			names = append(names, volume.SecretName)
		}
	}

	slices.Sort(names)

	return slices.Compact(names)
}

// masksOf are the texts that give a Secret away: its values, and the words of those with more
// than one, such as files.
func masksOf(secret *corev1.Secret) []string {
	var masks []string

	for _, data := range secret.Data {
		if value := strings.TrimSpace(string(data)); len(value) >= secretBytes {
			masks = append(masks, value)
		}

		for _, word := range strings.Fields(string(data)) {
			if len(word) >= wordBytes {
				masks = append(masks, word)
			}
		}
	}

	return masks
}
