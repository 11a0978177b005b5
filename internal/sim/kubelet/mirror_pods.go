package kubelet

import (
	"context"
	"fmt"
	"reflect"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// The annotations of kubelets on mirror pods (Kubernetes 1.36, kubelet/types/pod_update.go).
const (
	configHash   = "kubernetes.io/config.hash"
	configSeen   = "kubernetes.io/config.seen"
	configSource = "kubernetes.io/config.source"
)

// podReport is a kubelet's report about a static pod; the zero value means that there is none.
type podReport struct {
	pod     *corev1.Pod // as machined served it, with its UID
	ready   bool
	waiting string // the reason why the container does not run
	message string // belongs to waiting
	event   *podEvent

	restarts int32 // of its containers in this boot
	repeated int   // another client deleted or changed the mirror pod
}

// podEvent is a warning about a pod.
type podEvent struct{ reason, message string }

// report updates the mirror pod.
func (kl *Kubelet) report(id string, r podReport) {
	kl.World.Update(func() {
		run := kl.staticPodRun(id)
		r.restarts, r.repeated = run.restarts, run.shown.repeated
		run.shown = r
	})
}

// RepeatReports reports the mirror pods once more, after another client changed them. Callers hold world.
func (kl *Kubelet) RepeatReports() {
	for _, run := range kl.staticPods {
		run.shown.repeated++
	}
}

// mirrorName is the name of a static pod in the Kubernetes API.
func (kl *Kubelet) mirrorName(id string) string { return id + "-" + kl.NodeName }

// runMirrorPod keeps the mirror pod of a static pod as its kubelet does: it shows the
// latest report as soon as the kubelet runs, has its node and reaches an API server.
func (kl *Kubelet) runMirrorPod(ctx context.Context, id string) {
	var last podReport

	for {
		var next podReport

		if kl.World.Await(ctx, func() bool {
			next = kl.staticPodRun(id).shown

			return !reflect.DeepEqual(next, last) && kl.Starts > 0 && kl.RunsNode(kl.NodeName) &&
				kl.host.ServedKubernetes() != nil
		}) != nil {
			return
		}

		k := kl.host.AnyKubernetes()
		if k == nil {
			continue
		}

		if err := kl.mirror(ctx, k, id, next); err != nil {
			kl.World.Logf("%s: %v", kl.Name(), err)

			_ = timing.Pause(ctx, kube.KubeletRetry) // ends with ctx, as the loop does

			continue
		}

		last = next
	}
}

// mirror updates the mirror pod to the report, and replaces one of another static pod.
func (kl *Kubelet) mirror(ctx context.Context, k *kube.Client, id string, r podReport) error {
	pods := k.Typed.CoreV1().Pods(metav1.NamespaceSystem)

	old, err := pods.Get(ctx, kl.mirrorName(id), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("get mirror pod: %w", err)
	}

	found := err == nil

	replaced := func() bool { return old.Annotations[configHash] != r.pod.Annotations[configHash] }
	if found && (r.pod == nil || replaced() || !old.DeletionTimestamp.IsZero()) {
		options := metav1.NewPreconditionDeleteOptions(string(old.UID))
		options.GracePeriodSeconds = new(int64(0))

		if err := pods.Delete(ctx, old.Name, *options); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete mirror pod: %w", err)
		}

		found = false
	}

	if r.pod == nil {
		return nil
	}

	if !found {
		if old, err = kl.createMirrorPod(ctx, k, id, r.pod); err != nil {
			return err
		}
	}

	old.Status = kl.podStatus(id, r)

	if old, err = pods.UpdateStatus(ctx, old, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("update mirror pod: %w", err)
	}

	if r.event == nil {
		return nil
	}

	return kl.warn(ctx, k, old, *r.event)
}

func (kl *Kubelet) createMirrorPod(
	ctx context.Context, k *kube.Client, id string, static *corev1.Pod,
) (*corev1.Pod, error) {
	node, err := k.GetNode(ctx, kl.NodeName)
	if err != nil {
		return nil, fmt.Errorf("get node of mirror pod: %w", err)
	}

	pod := static.DeepCopy()
	pod.Name = kl.mirrorName(id)
	pod.Spec.NodeName = kl.NodeName
	pod.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: new(true)}}
	pod.Annotations[corev1.MirrorPodAnnotationKey] = pod.Annotations[configHash]
	pod.Annotations[configSource] = "http" // machined serves them (Talos 1.13, k8s/static_pod_server.go)
	pod.Annotations[configSeen] = metav1.Now().Format("2006-01-02T15:04:05.000000000Z07:00")

	created, err := k.Typed.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create mirror pod: %w", err)
	}

	return created, nil
}

// podStatus is what a kubelet reports about a pod on the host's network.
func (kl *Kubelet) podStatus(id string, r podReport) corev1.PodStatus {
	now := metav1.Now()
	address := kl.Advertised().String()
	container := corev1.ContainerStatus{
		Name: id, Image: r.pod.Spec.Containers[0].Image, Ready: r.ready, Started: new(r.ready), RestartCount: r.restarts,
	}
	ready := corev1.ConditionTrue

	if r.ready {
		container.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
		container.ContainerID = "containerd://" + uuid.NewString()
	} else {
		ready = corev1.ConditionFalse
		container.State.Waiting = &corev1.ContainerStateWaiting{Reason: r.waiting, Message: r.message}
	}

	status := corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: address, HostIPs: []corev1.HostIP{{IP: address}},
		PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, StartTime: &now,
		ContainerStatuses: []corev1.ContainerStatus{container},
	}

	if !r.ready && r.restarts == 0 {
		status.Phase = corev1.PodPending
	}

	for _, c := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady,
		corev1.PodScheduled} {
		condition := corev1.PodCondition{Type: c, Status: ready, LastTransitionTime: now}

		switch {
		case c == corev1.PodInitialized || c == corev1.PodScheduled:
			condition.Status = corev1.ConditionTrue
		case !r.ready:
			condition.Reason, condition.Message = "ContainersNotReady", fmt.Sprintf("containers with unready status: [%s]", id)
		}

		status.Conditions = append(status.Conditions, condition)
	}

	return status
}

// warn records an event about a mirror pod. A kubelet refers to it by the static pod's
// UID, which is the hash in the mirror pod's annotation.
func (kl *Kubelet) warn(ctx context.Context, k *kube.Client, pod *corev1.Pod, e podEvent) error {
	now := metav1.Now()
	container := pod.Spec.Containers[0].Name

	_, err := k.Typed.CoreV1().Events(pod.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name + "." + uuid.NewString()[:16], Namespace: pod.Namespace},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: types.UID(pod.Annotations[configHash]),
			FieldPath: fmt.Sprintf("spec.containers{%s}", container),
		},
		Type: corev1.EventTypeWarning, Reason: e.reason, Message: e.message, Count: 1, FirstTimestamp: now,
		LastTimestamp: now,
		Source:        corev1.EventSource{Component: "kubelet", Host: pod.Spec.NodeName},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("record event: %w", err)
	}

	return nil
}
