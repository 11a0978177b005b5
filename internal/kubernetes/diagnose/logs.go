package diagnose

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// logLines is how many lines of a log are reported, lineLength how many characters of each, and logBytes how
	// much is read. The kubelet truncates the last lines beyond that.
	logLines   = 10
	lineLength = 300
	logBytes   = 64 << 10
	// secretBytes and wordBytes are the minimum lengths for the content of a Secret, or a word in it, to be
	// redacted. Shorter content occurs in many texts and reveals little.
	secretBytes = 8
	wordBytes   = 16
)

// logOf reads the end of the log of the container that is the cause of a problem.
func (d *Diagnosis) logOf(ctx context.Context, pod *corev1.Pod, problem podProblem) (string, error) {
	var log []byte

	log, err := d.api.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: problem.container, Previous: problem.previous, TailLines: new(int64(logLines)),
		LimitBytes: new(int64(logBytes)),
	}).DoRaw(ctx)
	if err != nil {
		return "", err
	}

	if len(log) >= logBytes {
		// It was cut, maybe in the middle of a secret.
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

// maskOf returns a function that redacts the content of a pod's Secrets in a text.
func (d *Diagnosis) maskOf(ctx context.Context, pod *corev1.Pod) (func(text string) string, error) {
	var masks []string

	for _, name := range secretsOf(pod) {
		var secret *corev1.Secret

		secret, err := d.api.CoreV1().Secrets(pod.Namespace).Get(ctx, name, metav1.GetOptions{})

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
