package kube

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// kubelets do the work of kubelets and controllers of a cluster behind a real kube-apiserver. They remove pods
// that are being deleted, if their machines run, and those of nodes that are gone. Nothing starts any pods.
type kubelets struct {
	site   Site
	client kubernetes.Interface
	cancel context.CancelFunc
	work   sync.WaitGroup
}

func startKubelets(site Site, client kubernetes.Interface) *kubelets {
	ctx, cancel := context.WithCancel(site.Ctx)
	k := &kubelets{site: site, client: client, cancel: cancel}

	ending := map[types.UID]bool{}

	for _, follow := range []func(context.Context){
		func(ctx context.Context) { k.watchPods(ctx, ending) }, k.watchNodes,
	} {
		k.work.Go(func() {
			for ctx.Err() == nil {
				follow(ctx)

				_ = timing.Pause(ctx, HealthPeriod) // ends with ctx, as the loop does
			}
		})
	}

	return k
}

func (k *kubelets) stop() {
	k.cancel()
	k.work.Wait()
}

// watchPods sees all pods first, so that nothing is missed between two watches.
func (k *kubelets) watchPods(ctx context.Context, ending map[types.UID]bool) {
	events, err := k.client.CoreV1().Pods(metav1.NamespaceAll).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return // it starts, or has lost its etcd
	}

	defer events.Stop()

	for event := range events.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || pod.Spec.NodeName == "" || ending[pod.UID] {
			continue
		}

		if pod.DeletionTimestamp.IsZero() {
			if markedNotReady(pod) {
				k.site.Machines.RepeatReports(pod.Spec.NodeName)
			}

			continue
		}

		ending[pod.UID] = true

		k.work.Go(func() { k.end(ctx, pod) })
	}
}

// markedNotReady says whether the controller of nodes changed the readiness of a mirror pod, as it does when its node
// is not ready: kubelets, whose condition it is, put it right again (Kubernetes 1.36, status_manager.go
// needsReconcile).
func markedNotReady(pod *corev1.Pod) bool {
	statuses := map[corev1.PodConditionType]corev1.ConditionStatus{}
	for _, c := range pod.Status.Conditions {
		statuses[c.Type] = c.Status
	}

	return pod.Annotations[corev1.MirrorPodAnnotationKey] != "" &&
		statuses[corev1.PodReady] != statuses[corev1.ContainersReady]
}

func (k *kubelets) end(ctx context.Context, pod *corev1.Pod) {
	for k.site.Machines.AwaitKubelet(ctx, pod.Spec.NodeName) == nil {
		options := metav1.NewPreconditionDeleteOptions(string(pod.UID))
		options.GracePeriodSeconds = new(int64(0))

		err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *options)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			if pod.Annotations[corev1.MirrorPodAnnotationKey] != "" {
				k.site.Machines.RepeatReports(pod.Spec.NodeName)
			}

			return
		}

		_ = timing.Pause(ctx, KubeletRetry) // ends with ctx, as the loop does
	}
}

// watchNodes removes the pods of nodes that are deleted, as the pod garbage collector does.
func (k *kubelets) watchNodes(ctx context.Context) {
	events, err := k.client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return // it starts, or has lost its etcd
	}

	defer events.Stop()

	for event := range events.ResultChan() {
		node, ok := event.Object.(*corev1.Node)
		if !ok || event.Type != watch.Deleted {
			continue
		}

		// What is left over after an error stays, as it would for a while.
		_ = k.client.CoreV1().Pods(metav1.NamespaceSystem).DeleteCollection(ctx,
			metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))},
			metav1.ListOptions{FieldSelector: "spec.nodeName=" + node.Name})
	}
}
