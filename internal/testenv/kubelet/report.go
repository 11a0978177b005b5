// Package kubelet is what the stand-in kubelets of tests have in common: the status and the events of a pod, and
// the server of a node.
package kubelet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Report is what a kubelet reports of a pod, whose containers are all in one state.
type Report struct {
	Phase         corev1.PodPhase
	Begun         metav1.Time
	HostIP, PodIP string // PodIP is empty until the pod has one
	Container     Container
}

// Container is the state of a container.
type Container struct {
	ID, ImageID string
	State, Last corev1.ContainerState
	Restarts    int32
	Ready       bool
}

// Status is the status of a pod (Kubernetes 1.36, kubelet/kubelet_pods.go generateAPIPodStatus and
// kubelet/status/generate.go). What it keeps of the present one are the times of conditions that stay.
func (r Report) Status(pod *corev1.Pod) *corev1.PodStatus {
	status := pod.Status.DeepCopy()
	status.Phase, status.StartTime, status.ObservedGeneration = r.Phase, &r.Begun, pod.Generation
	status.HostIP, status.HostIPs = r.HostIP, []corev1.HostIP{{IP: r.HostIP}}
	status.PodIP, status.PodIPs = "", nil

	if r.PodIP != "" {
		status.PodIP, status.PodIPs = r.PodIP, []corev1.PodIP{{IP: r.PodIP}}
	}

	status.ContainerStatuses, status.InitContainerStatuses = nil, nil

	for i := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, r.Container.status(&pod.Spec.Containers[i]))
	}

	done := Container{ID: IDOf(pod), ImageID: r.Container.ImageID, Ready: true,
		State: Terminated(IDOf(pod), 0, "Completed", r.Begun)}

	for i := range pod.Spec.InitContainers {
		status.InitContainerStatuses = append(status.InitContainerStatuses, done.status(&pod.Spec.InitContainers[i]))
	}

	r.conditions(status, pod)

	return status
}

// IDOf is the id of a pod's container, for pods that have but one.
func IDOf(pod *corev1.Pod) string { return "containerd://" + string(pod.UID) }

// Terminated is the state of a container that began and ended at a time.
func Terminated(id string, code int32, reason string, at metav1.Time) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, StartedAt: at, FinishedAt: at, ContainerID: id}}
}

// Waiting is the state of a container that does not run yet, or not again.
func Waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// CrashLoop is the state of a container that ended again and waits, and the message of the event about that
// (Kubernetes 1.36, kubelet/kuberuntime/kuberuntime_manager.go doBackOff).
func CrashLoop(pod *corev1.Pod, container string, pause time.Duration) (corev1.ContainerState, string) {
	return Waiting("CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)", pause,
			container, pod.Name, pod.Namespace, pod.UID)),
		fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", container, pod.Name, pod.Namespace, pod.UID)
}

func (c Container) status(spec *corev1.Container) corev1.ContainerStatus {
	started := c.State.Running != nil
	status := corev1.ContainerStatus{
		Name: spec.Name, Image: spec.Image, Ready: c.Ready, Started: &started, RestartCount: c.Restarts, State: c.State,
		LastTerminationState: c.Last, ContainerID: c.ID, ImageID: c.ImageID,
	}

	if c.State.Terminated != nil {
		status.LastTerminationState = corev1.ContainerState{}
	}

	return status
}

func (r Report) conditions(status *corev1.PodStatus, pod *corev1.Pod) {
	names := make([]string, 0, len(pod.Spec.Containers))
	for i := range pod.Spec.Containers {
		names = append(names, pod.Spec.Containers[i].Name)
	}

	set := func(kind corev1.PodConditionType, holds bool, reason, message string) {
		c := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation}
		if !holds {
			c.Status, c.Reason, c.Message = corev1.ConditionFalse, reason, message
		}

		SetCondition(status, c)
	}

	reason, message := "ContainersNotReady", fmt.Sprintf("containers with unready status: %v", names)
	if r.Phase == corev1.PodSucceeded {
		reason, message = "PodCompleted", ""
	}

	set(corev1.PodScheduled, true, "", "")
	set(corev1.PodReadyToStartContainers, r.PodIP != "", "", "")
	set(corev1.PodInitialized, true, "", "")
	set(corev1.ContainersReady, r.Container.Ready, reason, message)
	set(corev1.PodReady, r.Container.Ready, reason, message)
}

// SetCondition replaces a condition, which changed now unless its status is the same.
func SetCondition(status *corev1.PodStatus, next corev1.PodCondition) {
	next.LastTransitionTime = metav1.Now().Rfc3339Copy()

	for i := range status.Conditions {
		old := &status.Conditions[i]
		if old.Type != next.Type {
			continue
		}

		if old.Status == next.Status {
			next.LastTransitionTime = old.LastTransitionTime
		}

		*old = next

		return
	}

	status.Conditions = append(status.Conditions, next)
}
