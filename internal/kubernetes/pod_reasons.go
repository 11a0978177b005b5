package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	clientgo "k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// hopeless are the reasons why a container waits that no time changes: the reference cannot
// be read, or the kubelet has not got the image and may not pull it (Kubernetes 1.36,
// pkg/kubelet/images/types.go ErrInvalidImageName and ErrImageNeverPull). An image that
// could not be pulled may be there at the next attempt.
var hopeless = []string{"InvalidImageName", "ErrImageNeverPull"}

// runs is nil when a pod of one container runs an image and is ready; else the error says
// what is missing.
func runs(pod *corev1.Pod, image string) error {
	switch {
	case pod.DeletionTimestamp != nil:
		return errors.New("the pod is being replaced")
	case len(pod.Spec.Containers) == 0:
		return errors.New("the pod has no container")
	case pod.Spec.Containers[0].Image != image:
		return fmt.Errorf("the pod still has image %s", pod.Spec.Containers[0].Image)
	}

	status := condition(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == pod.Spec.Containers[0].Name })
	if err := running(status); err != nil {
		return err
	}

	if !podReady(pod) {
		reason := "the pod is not ready"
		if c := condition(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady }); c != nil {
			reason += because(c.Reason, c.Message)
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
		err := fmt.Errorf("container %s waits%s%s", s.Name, because(w.Reason, w.Message), lastEnd(s))

		if slices.Contains(hopeless, w.Reason) {
			return wait.Permanent(err)
		}

		return err
	case s.State.Terminated != nil:
		return fmt.Errorf("container %s ended: %s", s.Name, ending(s.State.Terminated))
	default:
		return nil
	}
}

// lastEnd says how a container ended before, for one that is started over and over.
func lastEnd(s *corev1.ContainerStatus) string {
	if s == nil || s.LastTerminationState.Terminated == nil {
		return ""
	}

	return fmt.Sprintf("; restarted %d times, last end: %s", s.RestartCount, ending(s.LastTerminationState.Terminated))
}

func ending(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", t.ExitCode)
	if t.Signal != 0 {
		text += fmt.Sprintf(", signal %d", t.Signal)
	}

	return text + because(t.Reason, strings.TrimSpace(t.Message))
}

// lastEvent is the last one about the pod, or about the node of a kubelet. It has time of
// its own, since it is looked for when that of ctx may be up.
func (a *awaited) lastEvent(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), postmortem)
	defer cancel()

	if a.component.StaticPod() {
		return a.client.lastEvent(ctx, metav1.NamespaceSystem, "Pod", a.pod())
	}

	// Events about nodes are in the namespace default (client-go 0.36, tools/record makeEvent).
	return a.client.lastEvent(ctx, metav1.NamespaceDefault, "Node", a.node)
}

// lastEvent is the last one about an object. What cannot be read is said instead.
func (c *Client) lastEvent(ctx context.Context, namespace, kind, name string) string {
	var list *corev1.EventList

	err := c.do(ctx, func(ctx context.Context, api clientgo.Interface) (err error) {
		list, err = api.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.Set{"involvedObject.kind": kind, "involvedObject.name": name}.String(),
		})

		return err
	})

	switch {
	case err != nil:
		return "unknown, " + oneLine(err)
	case len(list.Items) == 0:
		return "none"
	}

	return LastEvent(list.Items)
}

// LastEvent says which of some events, one at least, happened last, and when. Of several at the same time it is
// the one that was written last, and then the one whose name is last.
func LastEvent(events []corev1.Event) string {
	last := slices.MaxFunc(events, func(a, b corev1.Event) int {
		// Most times are of whole seconds. Versions that cannot be compared are as good as equal.
		later, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
		if err != nil {
			later = 0
		}

		return cmp.Or(eventTime(&a).Compare(eventTime(&b)), later, cmp.Compare(a.Name, b.Name))
	})

	return fmt.Sprintf("%s %s: %s (%s)", last.Type, last.Reason, strings.TrimSpace(last.Message), eventTime(&last).UTC().Format(time.RFC3339))
}

// eventTime is when an event happened last: which field says so depends on the library that
// recorded it.
func eventTime(e *corev1.Event) time.Time {
	at := e.CreationTimestamp.Time

	for _, t := range []time.Time{e.FirstTimestamp.Time, e.EventTime.Time, e.LastTimestamp.Time} {
		if t.After(at) {
			at = t
		}
	}

	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}

	return at
}
