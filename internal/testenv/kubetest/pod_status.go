package kubetest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubelet"
)

// The annotations of pods, in the templates of charts, that say what becomes of them.
const (
	// FailAnnotation lets the containers end, with a status and a last log line:
	// "exit code 3: no such table". Those of a Deployment are restarted for ever.
	FailAnnotation = "kubetest/fail"
	// NeverReadyAnnotation makes the containers run, and fail their readiness probes.
	NeverReadyAnnotation = "kubetest/never-ready"
	// HangAnnotation makes a pod never start; a pod that would complete starts, and never ends.
	HangAnnotation = "kubetest/hang"
	// DelayAnnotation is how long a pod takes to begin, such as 2s.
	DelayAnnotation = "kubetest/delay"
	// MissingImageAnnotation makes the images of a pod missing in every registry.
	MissingImageAnnotation = "kubetest/missing-image"
	// LogAnnotation is the log of the containers of a pod.
	LogAnnotation = "kubetest/log"
	// CNIAnnotation marks a pod that provides the network of its node.
	CNIAnnotation = "kubetest/cni"
)

const (
	// jobTime is the run time of a pod that completes.
	jobTime = 200 * time.Millisecond
	// restartTime is the time between two starts of a container that ends.
	restartTime = time.Second
)

// podStatus is the status of a pod at a time.
type podStatus struct {
	kubelet.Report

	pod         *corev1.Pod
	event       *warning
	installsCNI bool
}

var failure = regexp.MustCompile(`^exit code (\d+): (.*)$`)

// failureOf reads FailAnnotation; any text without a status ends with 1.
func failureOf(pod *corev1.Pod) (code int32, text string, fails bool) {
	text, fails = pod.Annotations[FailAnnotation]
	code = 1

	if parts := failure.FindStringSubmatch(text); parts != nil {
		if n, err := strconv.ParseInt(parts[1], 10, 32); err == nil {
			code, text = int32(n), parts[2]
		}
	}

	return code, text, fails
}

func scripted(pod *corev1.Pod, annotation string) bool {
	value, ok := pod.Annotations[annotation]

	return ok && value != "false"
}

// ends reports whether a pod completes by itself, as those of Jobs do.
func ends(pod *corev1.Pod) bool { return pod.Spec.RestartPolicy != corev1.RestartPolicyAlways }

// statusOf follows from the script of a pod and the time since it has its node.
func statusOf(pod *corev1.Pod, node *corev1.Node, begun, now time.Time) podStatus {
	l := podStatus{pod: pod, Report: kubelet.Report{
		Phase: corev1.PodPending, Begun: metav1.NewTime(begun.Truncate(time.Second)), HostIP: addressOf(node)}}
	code, _, fails := failureOf(pod)
	age := now.Sub(begun)

	if delay, err := time.ParseDuration(pod.Annotations[DelayAnnotation]); err == nil {
		age -= delay
	}

	switch {
	case age < 0 || scripted(pod, HangAnnotation) && !ends(pod):
		l.wait("ContainerCreating", "")
	case !networked(node, pod):
		l.wait("ContainerCreating", "")
		l.warn("NetworkNotReady", "network is not ready: container runtime network not ready: NetworkReady=false "+
			"reason:NetworkPluginNotReady")
	case scripted(pod, MissingImageAnnotation):
		l.missImage(age)
	case fails && pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		l.Phase, l.Container.State = corev1.PodFailed, l.terminated(code, "Error", 0)
	case fails:
		l.crash(code, age)
	case ends(pod) && age >= jobTime && !scripted(pod, HangAnnotation):
		l.Phase, l.Container.State = corev1.PodSucceeded, l.terminated(0, "Completed", 0)
	default:
		l.runs()
	}

	if l.Phase != corev1.PodPending {
		l.PodIP = l.address()
		l.Container.ID = kubelet.IDOf(pod)
		l.Container.ImageID = "sha256:" + strings.ReplaceAll(string(pod.UID), "-", "")
	}

	return l
}

func (l *podStatus) runs() {
	l.Phase = corev1.PodRunning
	l.Container.State.Running = &corev1.ContainerStateRunning{StartedAt: l.Begun}
	l.Container.Ready = !scripted(l.pod, NeverReadyAnnotation)
	l.installsCNI = l.Container.Ready && scripted(l.pod, CNIAnnotation)

	if !l.Container.Ready {
		l.warn("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")
	}
}

func (l *podStatus) wait(reason, message string) {
	l.Container.State = kubelet.Waiting(reason, message)
}

func (l *podStatus) warn(reason, message string) { l.event = &warning{reason, message} }

// missImage is a kubelet's message about an image that no registry has (Kubernetes 1.36,
// kubelet/images/image_manager.go).
func (l *podStatus) missImage(age time.Duration) {
	image := l.pod.Spec.Containers[0].Image
	missing := fmt.Sprintf("failed to pull and unpack image %q: %s: not found", image, image)

	if age < restartTime/2 {
		l.wait("ErrImagePull", missing)
		l.warn("Failed", fmt.Sprintf("Failed to pull image %q: %s", image, missing))

		return
	}

	l.wait("ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", image, missing))
	l.warn("BackOff", fmt.Sprintf("Back-off pulling image %q", image))
}

// crash is a container that ends again and again; the next start comes sooner here.
func (l *podStatus) crash(code int32, age time.Duration) {
	l.Phase = corev1.PodRunning
	l.Container.Restarts = 1 + int32(age/restartTime)
	l.Container.Last = l.terminated(code, "Error", age.Truncate(restartTime))

	var message string
	l.Container.State, message = kubelet.CrashLoop(l.pod, l.pod.Spec.Containers[0].Name, 10*time.Second)
	l.warn("BackOff", message)
}

func (l *podStatus) terminated(code int32, reason string, after time.Duration) corev1.ContainerState {
	return kubelet.Terminated(kubelet.IDOf(l.pod), code, reason, metav1.NewTime(l.Begun.Add(after)))
}

func (l *podStatus) address() string {
	if l.pod.Spec.HostNetwork {
		return l.HostIP
	}

	// No client connects to it, so it need not be unique.
	return fmt.Sprintf("10.244.%d.%d", l.pod.UID[0], l.pod.UID[1])
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// networked reports whether a pod has the network that it needs.
func networked(node *corev1.Node, pod *corev1.Pod) bool {
	return pod.Spec.HostNetwork || ready(node) || scripted(pod, CNIAnnotation)
}
