package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fieldselector "k8s.io/apimachinery/pkg/fields"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/diagnose"
)

// surroundings is what an observation asks about besides the objects of the machines, at most once, and only when a
// machine's pod does not run.
type surroundings struct {
	host    *Client
	nodes   func() (map[string]*corev1.Node, error)
	volumes func() (map[string]*corev1.PersistentVolume, error)
}

// newSurroundings asks nothing yet. Maps are nil when the credentials may not read.
func (h *Client) newSurroundings(ctx context.Context, s Spec) *surroundings {
	return &surroundings{
		host: h,
		nodes: sync.OnceValues(func() (map[string]*corev1.Node, error) {
			list, err := h.API().CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, unlessForbidden(fmt.Errorf("list the nodes of %s: %w", h, err))
			}

			return byNames(list.Items), nil
		}),
		volumes: sync.OnceValues(func() (map[string]*corev1.PersistentVolume, error) {
			list, err := h.API().CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, unlessForbidden(fmt.Errorf("list the volumes of %s for %s: %w", h, s.Cluster, err))
			}

			return byNames(list.Items), nil
		}),
	}
}

func unlessForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}

	return err
}

// explain returns why a machine's pod does not run, and whether its volumes are lost.
func (about *surroundings) explain(
	ctx context.Context, s Spec, m Machine, found *Inventory, vanished []string, state *MachineState,
) error {
	// A ready pod needs no other request.
	if state.Ready || !state.Exists {
		return nil
	}

	diagnosis, err := about.diagnose(ctx, s, m, found)
	if err != nil || diagnosis == "" || m.Pod.Storage.Ephemeral {
		state.Diagnosis = diagnosis

		return err
	}

	lost, err := about.lost(s, m, found)

	if !keepsClaims(found.Pods[s.PodName(m)]) {
		for _, name := range vanished {
			lost = append(lost, Difference{Object: ClaimKind.refTo(s.Namespace, name), Cause: Vanished})
		}
	}

	state.VolumesLost = len(lost) > 0
	state.Diagnosis = join("; ", strings.Join(Lines(lost), "; "), diagnosis)

	return err
}

// diagnose returns why the pod of a machine does not run, empty when it does, or when nothing of it is meant to.
func (about *surroundings) diagnose(ctx context.Context, s Spec, m Machine, found *Inventory) (string, error) {
	set, pod := found.Sets[s.HostName(m)], found.Pods[s.PodName(m)]

	switch {
	case pod == nil && (set == nil || set.DeletionTimestamp != nil):
		return "", nil // what is missing is drift
	case pod == nil && set.Spec.Replicas != nil && *set.Spec.Replicas == 0:
		return SetKind.Of(set) + " is scaled to 0", nil
	case pod == nil:
		event, err := about.lastEvent(ctx, SetKind, set)

		return fmt.Sprintf("%s has not created its pod; last event: %s", SetKind.Of(set), event), err
	}

	node, err := about.diagnoseNode(pod)
	if err != nil {
		return "", err
	}

	reason := podReason(pod)

	switch {
	case reason == "" && node == "":
		return "", nil
	case node != "":
		return join("; ", reason, node), nil
	case pod.DeletionTimestamp != nil:
		return reason, nil
	}

	if claim := pendingClaim(s, m, found); claim != nil && pod.Spec.NodeName == "" {
		event, err := about.lastEvent(ctx, ClaimKind, claim)

		return fmt.Sprintf("%s; %s is not bound (%s); last event of the claim: %s", reason, ClaimKind.Of(claim),
			claimClass(claim), event), err
	}

	event, err := about.lastEvent(ctx, PodKind, pod)

	return fmt.Sprintf("%s; last event: %s", reason, event), err
}

// podReason is why a pod does not run by what it says itself, empty when it runs.
func podReason(pod *corev1.Pod) string {
	name := PodKind.Of(pod)
	scheduled := podCondition(pod, corev1.PodScheduled)

	switch {
	case pod.DeletionTimestamp != nil:
		since := pod.DeletionTimestamp.Time
		if grace := pod.DeletionGracePeriodSeconds; grace != nil {
			since = since.Add(-time.Duration(*grace) * time.Second)
		}

		return fmt.Sprintf("%s has been terminating since %s", name, since.UTC().Format(time.RFC3339))
	case pod.Status.Phase == corev1.PodFailed:
		return name + " failed" + because(pod.Status.Reason, pod.Status.Message)
	case scheduled != nil && scheduled.Status == corev1.ConditionFalse:
		return name + " is not scheduled" + because(scheduled.Reason, scheduled.Message)
	}

	status := talosStatus(pod)

	switch {
	case status == nil && pod.Spec.NodeName == "":
		return name + " is waiting for the scheduler"
	case status == nil:
		return name + " has not started" + because(pod.Status.Reason, pod.Status.Message)
	case status.State.Running != nil:
		return ""
	case status.State.Waiting != nil:
		return name + " is waiting" + because(status.State.Waiting.Reason, status.State.Waiting.Message) + lastEnd(status)
	case status.State.Terminated != nil:
		return name + " terminated: " + ending(status.State.Terminated)
	default:
		return name + " has not started"
	}
}

// diagnoseNode describes the problem of a pod's node and what to do. A pod whose kubelet does not answer neither
// moves nor goes, because it may still write to its volumes.
func (about *surroundings) diagnoseNode(pod *corev1.Pod) (string, error) {
	if pod.Spec.NodeName == "" {
		return "", nil
	}

	nodes, err := about.nodes()
	if err != nil || nodes == nil {
		return "", err
	}

	node := nodes[pod.Spec.NodeName]
	if node == nil {
		return fmt.Sprintf("its node %s no longer exists; the host removes the pod automatically", pod.Spec.NodeName), nil
	}

	for _, c := range node.Status.Conditions {
		if c.Type != corev1.NodeReady || c.Status == corev1.ConditionTrue {
			continue
		}

		return fmt.Sprintf("its node %s is not ready since %s%s; restore it, or, if it is gone for good, delete the "+
			"Node or taint it with `kubectl taint node %s %s=nodeshutdown:NoExecute` to move the pod to another one",
			node.Name, stamp(&c.LastTransitionTime), because(c.Reason, c.Message), node.Name, corev1.TaintNodeOutOfService), nil
	}

	return "", nil
}

// pendingClaim is the first of a machine's claims that is not bound.
func pendingClaim(s Spec, m Machine, found *Inventory) *corev1.PersistentVolumeClaim {
	for _, at := range dataPaths {
		if claim := found.Claims[s.claimName(m, at)]; claim != nil && claim.Status.Phase == corev1.ClaimPending {
			return claim
		}
	}

	return nil
}

func claimClass(claim *corev1.PersistentVolumeClaim) string {
	if class := claim.Spec.StorageClassName; class != nil && *class != "" {
		return "storage class " + *class
	}

	return "no storage class: the host has no default"
}

// lastEvent is the last one about an object.
func (about *surroundings) lastEvent(ctx context.Context, k *Kind, o metav1.Object) (string, error) {
	list, err := about.host.API().CoreV1().Events(o.GetNamespace()).List(ctx,
		metav1.ListOptions{FieldSelector: fieldselector.Set{
			"involvedObject.kind": k.name, "involvedObject.name": o.GetName(), "involvedObject.uid": string(o.GetUID()),
		}.String()})

	switch {
	case apierrors.IsForbidden(err):
		return "unknown (no permission to list events)", nil
	case err != nil:
		return "", fmt.Errorf("list the events of %s on %s: %w", k.Of(o), about.host, err)
	case len(list.Items) == 0:
		return "none", nil
	}

	return diagnose.Last(list.Items), nil
}

func talosStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if status := &pod.Status.ContainerStatuses[i]; status.Name == ContainerName {
			return status
		}
	}

	return nil
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}

	return nil
}

// lastEnd returns how a container ended before, for one that restarts repeatedly.
func lastEnd(status *corev1.ContainerStatus) string {
	if status.LastTerminationState.Terminated == nil {
		return ""
	}

	return fmt.Sprintf("; restarted %d times, last exit: %s", status.RestartCount,
		ending(status.LastTerminationState.Terminated))
}

func ending(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", t.ExitCode)
	if t.Signal != 0 {
		text += fmt.Sprintf(", signal %d", t.Signal)
	}

	return text + because(t.Reason, t.Message)
}

// because is the reason and the message of a condition, where it has them.
func because(reason, message string) string {
	if text := join(": ", reason, strings.TrimSpace(message)); text != "" {
		return " (" + text + ")"
	}

	return ""
}

func join(separator string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), separator)
}

func byNames[T any, P interface {
	*T
	metav1.Object
}](items []T) map[string]P {
	named := make(map[string]P, len(items))

	for i := range items {
		p := P(&items[i])
		named[p.GetName()] = p
	}

	return named
}
