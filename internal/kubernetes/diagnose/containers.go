package diagnose

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/nodes"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// hopeless are the reasons why a container waits that no time changes: the reference cannot
// be read, or the kubelet has not got the image and may not pull it (Kubernetes 1.36,
// pkg/kubelet/images/types.go ErrInvalidImageName and ErrImageNeverPull). An image that
// could not be pulled may be there at the next attempt.
var hopeless = []string{"InvalidImageName", "ErrImageNeverPull"}

// Runs is nil when a pod of one container runs an image and is ready; otherwise the error names what is missing.
func Runs(pod *corev1.Pod, image string) error {
	switch {
	case pod.DeletionTimestamp != nil:
		return errors.New("the pod is being replaced")
	case len(pod.Spec.Containers) == 0:
		return errors.New("the pod has no container")
	case pod.Spec.Containers[0].Image != image:
		return fmt.Errorf("the pod still has image %s", pod.Spec.Containers[0].Image)
	}

	status := condition(pod.Status.ContainerStatuses,
		func(s corev1.ContainerStatus) bool { return s.Name == pod.Spec.Containers[0].Name })
	if err := running(status); err != nil {
		return err
	}

	if !nodes.PodReady(pod) {
		reason := "the pod is not ready"
		if c := condition(pod.Status.Conditions,
			func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady }); c != nil {
			reason += Because(c.Reason, c.Message)
		}

		return errors.New(reason + lastEnd(status))
	}

	return nil
}

// running is nil for a container that runs, or whose state is not known yet.
func running(s *corev1.ContainerStatus) error {
	switch {
	case s == nil:
		return nil
	case s.State.Waiting != nil:
		w := s.State.Waiting
		err := fmt.Errorf("container %s is waiting%s%s", s.Name, Because(w.Reason, w.Message), lastEnd(s))

		if slices.Contains(hopeless, w.Reason) {
			return wait.Permanent(err)
		}

		return err
	case s.State.Terminated != nil:
		return fmt.Errorf("container %s terminated: %s", s.Name, ending(s.State.Terminated))
	default:
		return nil
	}
}

// lastEnd returns how a container ended before, for one that restarts repeatedly.
func lastEnd(s *corev1.ContainerStatus) string {
	if s == nil || s.LastTerminationState.Terminated == nil {
		return ""
	}

	return fmt.Sprintf("; restarted %d times, last termination: %s",
		s.RestartCount, ending(s.LastTerminationState.Terminated))
}

func ending(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", t.ExitCode)
	if t.Signal != 0 {
		text += fmt.Sprintf(", signal %d", t.Signal)
	}

	return text + Because(t.Reason, strings.TrimSpace(t.Message))
}

func condition[T any](all []T, is func(T) bool) *T {
	for i := range all {
		if is(all[i]) {
			return &all[i]
		}
	}

	return nil
}
