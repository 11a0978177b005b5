package hosttest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/image"
)

// write puts what the kubelet reports into a pod's status (Kubernetes 1.36, kubelet/kubelet_pods.go
// generateAPIPodStatus and kubelet/status/generate.go).
func (r *run) write(pod *corev1.Pod) {
	status := &pod.Status
	status.Phase, status.StartTime, status.ObservedGeneration = r.phase, &r.begun, pod.Generation
	status.HostIP = r.node.address.String()
	status.HostIPs = []corev1.HostIP{{IP: status.HostIP}}
	status.PodIP, status.PodIPs = "", nil

	if r.address != "" {
		status.PodIP, status.PodIPs = r.address, []corev1.PodIP{{IP: r.address}}
	}

	status.ContainerStatuses = nil
	for i := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, r.container.status(&pod.Spec.Containers[i]))
	}

	r.conditions(status, pod)
}

func (c container) status(spec *corev1.Container) corev1.ContainerStatus {
	started := c.state.Running != nil
	status := corev1.ContainerStatus{
		Name: spec.Name, Image: spec.Image, Ready: c.ready, Started: &started, RestartCount: c.restarts, State: c.state,
		LastTerminationState: c.last, ContainerID: c.id, ImageID: c.imageID,
	}

	if c.state.Terminated != nil {
		status.LastTerminationState = corev1.ContainerState{}
	}

	return status
}

func (r *run) conditions(status *corev1.PodStatus, pod *corev1.Pod) {
	unready := []string{}

	if !r.container.ready {
		for i := range pod.Spec.Containers {
			unready = append(unready, pod.Spec.Containers[i].Name)
		}
	}

	for kind, holds := range map[corev1.PodConditionType]bool{
		corev1.PodReadyToStartContainers: r.address != "",
		corev1.PodInitialized:            true,
		corev1.PodReady:                  r.container.ready,
		corev1.ContainersReady:           r.container.ready,
		corev1.PodScheduled:              true,
	} {
		c := corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation}

		if !holds {
			c.Status = corev1.ConditionFalse
		}

		if !holds && kind != corev1.PodReadyToStartContainers {
			c.Reason, c.Message = "ContainersNotReady", fmt.Sprintf("containers with unready status: %v", unready)
		}

		setCondition(status, c)
	}
}

// setCondition replaces a condition, which changed now unless its status is the same.
func setCondition(status *corev1.PodStatus, next corev1.PodCondition) {
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

// podAddress is the address of the pod in which the machine at an address runs, and machineAddress the other way round.
func podAddress(machine netip.Addr) netip.Addr { return swapped(machine, 10) }

func machineAddress(pod netip.Addr) netip.Addr { return swapped(pod, 127) }

func swapped(address netip.Addr, first byte) netip.Addr {
	a := address.As4()
	a[0] = first

	return netip.AddrFrom4(a)
}

// imageID is the reference of an image by its digest.
func imageID(reference string) string {
	ref, err := image.ParseReference(reference)
	if err != nil {
		return reference
	}

	if ref.Digest == "" {
		sum := sha256.Sum256([]byte(reference))
		ref.Digest = "sha256:" + hex.EncodeToString(sum[:])
	}

	ref.Tag = ""

	return ref.String()
}

func hexadecimal(uuids string) string { return strings.ReplaceAll(uuids, "-", "") }
