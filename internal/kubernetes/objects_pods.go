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
	// logLines are how many lines of a log are told, lineLength how many characters of each, and
	// logBytes how much is read: of the last lines, the kubelet leaves out the end of what is too much.
	logLines   = 10
	lineLength = 300
	logBytes   = 64 << 10
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

		if trouble := troubleOf(pod); trouble.weight != fine {
			troubles = append(troubles, fmt.Sprintf("pod %s: %s", pod.Name, c.reportOn(ctx, pod, trouble)))
		}
	}

	return troubles, nil
}

// logOf reads the end of the log of the container that is the cause of a trouble.
func (c *Client) logOf(ctx context.Context, pod *corev1.Pod, trouble podTrouble) (string, error) {
	var log []byte

	err := c.do(ctx, func(ctx context.Context, api clientgo.Interface) (err error) {
		log, err = api.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
			Container: trouble.container, Previous: trouble.previous, TailLines: new(int64(logLines)), LimitBytes: new(int64(logBytes)),
		}).DoRaw(ctx)

		return err
	})
	if err != nil {
		return "", err
	}

	if len(log) >= logBytes {
		// It was cut, maybe in the midst of what must not be told.
		log = log[:bytes.LastIndexAny(log, " \t\n")+1]
	}

	return string(log), nil
}

// lastLines is the end of what a program wrote, as much of it as a person reads.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	lines = lines[max(0, len(lines)-logLines):]

	for i, line := range lines {
		lines[i] = shortened(strings.TrimRight(line, "\r \t"))
	}

	return strings.Join(lines, "\n")
}

// shortened is the beginning of a line.
func shortened(line string) string {
	if runes := []rune(line); len(runes) > lineLength {
		return string(runes[:lineLength]) + "…"
	}

	return line
}

// maskOf returns what takes out of a text what the Secrets contain that a pod is given.
func (c *Client) maskOf(ctx context.Context, pod *corev1.Pod) (func(text string) string, error) {
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
			return nil, fmt.Errorf("read Secret %s: %w", name, err)
		default:
			masks = append(masks, masksOf(secret)...)
		}
	}

	// The longest first: one may be a part of another.
	slices.SortFunc(masks, func(a, b string) int { return len(b) - len(a) })

	return func(text string) string {
		for _, mask := range masks {
			text = strings.ReplaceAll(text, mask, "(sensitive)")
		}

		return text
	}, nil
}

// secretsOf are the names of the Secrets that the containers of a pod are given, each once.
func secretsOf(pod *corev1.Pod) []string {
	var names []string

	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, from := range container.EnvFrom {
			if from.SecretRef != nil {
				names = append(names, from.SecretRef.Name)
			}
		}

		for _, variable := range container.Env {
			if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
				names = append(names, variable.ValueFrom.SecretKeyRef.Name)
			}
		}
	}

	for i := range pod.Spec.Volumes {
		if secret := pod.Spec.Volumes[i].Secret; secret != nil {
			names = append(names, secret.SecretName)
		}

		if projected := pod.Spec.Volumes[i].Projected; projected != nil {
			for _, source := range projected.Sources {
				if source.Secret != nil {
					names = append(names, source.Secret.Name)
				}
			}
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
