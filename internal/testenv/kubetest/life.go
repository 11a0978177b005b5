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
)

// The annotations of pods, in the templates of charts, that say what becomes of them.
const (
	// FailAnnotation lets the containers end, with a status and a last log line:
	// "exit code 3: no such table". Those of a Deployment are restarted for ever.
	FailAnnotation = "kubetest/fail"
	// NeverReadyAnnotation lets the containers run, and fail their readiness probes.
	NeverReadyAnnotation = "kubetest/never-ready"
	// HangAnnotation lets a pod never begin; one that is to end begins, and never ends.
	HangAnnotation = "kubetest/hang"
	// DelayAnnotation is how long a pod takes to begin, such as 2s.
	DelayAnnotation = "kubetest/delay"
	// MissingImageAnnotation lets the images of a pod be in no registry.
	MissingImageAnnotation = "kubetest/missing-image"
	// LogAnnotation is what the containers of a pod log.
	LogAnnotation = "kubetest/log"
	// CNIAnnotation says that a pod brings the network of its node.
	CNIAnnotation = "kubetest/cni"
)

const (
	// jobTime is how long a pod runs that is to end.
	jobTime = 200 * time.Millisecond
	// restartTime is the time between two starts of a container that ends.
	restartTime = time.Second
)

// life is where a pod is in its life at a time.
type life struct {
	pod   *corev1.Pod
	node  *corev1.Node
	begun metav1.Time

	phase       corev1.PodPhase
	ready       bool
	container   corev1.ContainerState
	last        corev1.ContainerState
	restarts    int32
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

// ends says whether a pod is to end by itself, as those of Jobs are.
func ends(pod *corev1.Pod) bool { return pod.Spec.RestartPolicy != corev1.RestartPolicyAlways }

// lifeOf follows from the script of a pod and the time since it has its node.
func lifeOf(pod *corev1.Pod, node *corev1.Node, begun, now time.Time) life {
	l := life{pod: pod, node: node, begun: metav1.NewTime(begun.Truncate(time.Second)), phase: corev1.PodPending}
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
		l.phase = corev1.PodFailed
		l.container.Terminated = l.terminated(code, "Error", 0)
	case fails:
		l.crash(code, age)
	case ends(pod) && age >= jobTime && !scripted(pod, HangAnnotation):
		l.phase = corev1.PodSucceeded
		l.container.Terminated = l.terminated(0, "Completed", 0)
	default:
		l.runs()
	}

	return l
}

func (l *life) runs() {
	l.phase = corev1.PodRunning
	l.container.Running = &corev1.ContainerStateRunning{StartedAt: l.begun}
	l.ready = !scripted(l.pod, NeverReadyAnnotation)
	l.installsCNI = l.ready && scripted(l.pod, CNIAnnotation)

	if !l.ready {
		l.warn("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")
	}
}

func (l *life) wait(reason, message string) {
	l.container.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
}

func (l *life) warn(reason, message string) {
	l.event = &warning{reason, message}
}

// missImage is what a kubelet says of an image that no registry has (Kubernetes 1.36,
// kubelet/images/image_manager.go).
func (l *life) missImage(age time.Duration) {
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

// crash is a container that ends again and again (Kubernetes 1.36,
// kubelet/kuberuntime/kuberuntime_manager.go doBackOff); the next start comes sooner here.
func (l *life) crash(code int32, age time.Duration) {
	pod := l.pod
	l.phase = corev1.PodRunning
	l.restarts = 1 + int32(age/restartTime)
	l.last.Terminated = l.terminated(code, "Error", age.Truncate(restartTime))

	text := fmt.Sprintf("restarting failed container=%s pod=%s_%s(%s)", pod.Spec.Containers[0].Name, pod.Name,
		pod.Namespace, pod.UID)
	l.wait("CrashLoopBackOff", "back-off 10s "+text)
	l.warn("BackOff", fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)",
		pod.Spec.Containers[0].Name, pod.Name, pod.Namespace, pod.UID))
}

func (l *life) terminated(code int32, reason string, after time.Duration) *corev1.ContainerStateTerminated {
	at := metav1.NewTime(l.begun.Add(after))

	return &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, StartedAt: at, FinishedAt: at, ContainerID: "containerd://" + string(l.pod.UID),
	}
}

// status is what a kubelet reports of the pod.
func (l *life) status() *corev1.PodStatus {
	status := l.pod.Status.DeepCopy()
	status.Phase = l.phase
	status.StartTime = &l.begun

	if l.phase != corev1.PodPending {
		l.address(status)
	}

	status.ContainerStatuses = nil
	for i := range l.pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, l.containerStatus(&l.pod.Spec.Containers[i]))
	}

	status.InitContainerStatuses = nil

	for i := range l.pod.Spec.InitContainers {
		done := life{pod: l.pod, begun: l.begun, ready: true}
		done.container.Terminated = done.terminated(0, "Completed", 0)
		status.InitContainerStatuses = append(status.InitContainerStatuses,
			done.containerStatus(&l.pod.Spec.InitContainers[i]))
	}

	l.conditions(status)

	return status
}

func (l *life) address(status *corev1.PodStatus) {
	status.HostIP = addressOf(l.node)
	status.HostIPs = []corev1.HostIP{{IP: status.HostIP}}
	status.PodIP = status.HostIP

	if !l.pod.Spec.HostNetwork {
		// Nobody connects to it; that it is not the only one of its kind does not matter.
		uid := []byte(l.pod.UID)
		status.PodIP = fmt.Sprintf("10.244.%d.%d", uid[0], uid[1])
	}

	status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
}

func (l *life) containerStatus(c *corev1.Container) corev1.ContainerStatus {
	started := l.container.Running != nil
	status := corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, Ready: l.ready, Started: &started, RestartCount: l.restarts, State: l.container,
		LastTerminationState: l.last,
	}

	if l.container.Waiting == nil || l.restarts > 0 {
		status.ImageID, status.ContainerID = "sha256:"+strings.ReplaceAll(string(l.pod.UID), "-", ""),
			"containerd://"+string(l.pod.UID)
	}

	return status
}

func (l *life) conditions(status *corev1.PodStatus) {
	state := func(kind corev1.PodConditionType, ok bool, reason string) {
		c := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second))}

		if !ok {
			names := make([]string, 0, len(l.pod.Spec.Containers))
			for i := range l.pod.Spec.Containers {
				names = append(names, l.pod.Spec.Containers[i].Name)
			}

			c.Status, c.Reason, c.Message = corev1.ConditionFalse, reason,
				fmt.Sprintf("containers with unready status: %v", names)
		}

		if l.phase == corev1.PodSucceeded && !ok {
			c.Reason, c.Message = "PodCompleted", ""
		}

		setCondition(status, c)
	}

	state(corev1.PodScheduled, true, "")
	state(corev1.PodInitialized, true, "")
	state(corev1.ContainersReady, l.ready, "ContainersNotReady")
	state(corev1.PodReady, l.ready, "ContainersNotReady")
}

// setCondition replaces a condition unless it says the same.
func setCondition(status *corev1.PodStatus, next corev1.PodCondition) {
	for i := range status.Conditions {
		old := &status.Conditions[i]
		if old.Type != next.Type {
			continue
		}

		if old.Status == next.Status {
			next.LastTransitionTime = old.LastTransitionTime
		}

		next.ObservedGeneration = old.ObservedGeneration
		next.LastProbeTime = old.LastProbeTime
		*old = next

		return
	}

	status.Conditions = append(status.Conditions, next)
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// networked says whether a pod has the network that it needs.
func networked(node *corev1.Node, pod *corev1.Pod) bool {
	return pod.Spec.HostNetwork || ready(node) || scripted(pod, CNIAnnotation)
}
