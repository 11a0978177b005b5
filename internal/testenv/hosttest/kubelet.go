package hosttest

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubelet"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// pollPeriod is the pause between two observations of something that is about to come.
const pollPeriod = 50 * time.Millisecond

// watch makes kubelets follow pods, and load balancers follow Services.
func (h *Host) watch(core coreinformers.Interface) error {
	pods, services := handler(h.sync), handler(h.expose)
	pods.DeleteFunc = h.dropped

	if _, err := core.Pods().Informer().AddEventHandler(pods); err != nil {
		return err
	}

	_, err := core.Services().Informer().AddEventHandler(services)

	return err
}

// handler sees what objects of a kind are.
func handler[T any](see func(T)) cache.ResourceEventHandlerFuncs {
	only := func(o any) {
		if object, ok := o.(T); ok {
			see(object)
		}
	}

	return cache.ResourceEventHandlerFuncs{AddFunc: only, UpdateFunc: func(_, o any) { only(o) }}
}

// sync passes the new state of a pod to the kubelet of its node.
func (h *Host) sync(pod *corev1.Pod) {
	n := h.nodeOf(func(n *node) bool { return n.name == pod.Spec.NodeName })
	if n == nil || pod.Annotations[corev1.MirrorPodAnnotationKey] != "" {
		return
	}

	n.mu.Lock()
	defer n.mu.Unlock()

	r := n.runs[pod.UID]
	if r == nil {
		if n.ctx.Err() != nil {
			return
		}

		r = newRun(n, pod)
		n.runs[pod.UID] = r
		n.work.Go(r.live)
	}

	r.see(pod)
}

// dropped reports a deleted pod object to the kubelet.
func (h *Host) dropped(o any) {
	if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = unknown.Obj
	}

	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}

	n := h.nodeOf(func(n *node) bool { return n.name == pod.Spec.NodeName })
	if n == nil {
		return
	}

	n.mu.Lock()
	defer n.mu.Unlock()

	if r := n.runs[pod.UID]; r != nil {
		r.kill()
		delete(n.runs, pod.UID)
	}
}

// report writes the status of the run's pod, if that is still the one.
func (r *run) report(ctx context.Context) {
	pod := r.pod.Load()

	_ = wait.Until(ctx, pollPeriod, func(ctx context.Context) error { // until ctx ends
		changed := pod.DeepCopy()
		changed.Status = *r.status(pod)

		_, err := r.node.host.API().CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return r.unless(err)
		}

		now, getErr := r.node.host.API().CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if getErr != nil {
			return r.unless(getErr)
		}

		if now.UID != pod.UID {
			return nil
		}

		pod = now

		return err
	})
}

// unless returns an error that is worth a retry.
func (r *run) unless(err error) error {
	if apierrors.IsNotFound(err) {
		return nil // the pod is gone
	}

	return err
}

// confirm removes the object of a pod that has ended.
func (r *run) confirm(ctx context.Context) {
	pod := r.pod.Load()
	options := metav1.NewPreconditionDeleteOptions(string(pod.UID))
	options.GracePeriodSeconds = new(int64(0))

	_ = wait.Until(ctx, pollPeriod, func(ctx context.Context) error { // until ctx ends
		err := r.node.host.API().CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *options)
		if apierrors.IsConflict(err) {
			return nil // another pod has its name
		}

		return r.unless(err)
	})
}

// tell makes an event of the pod, once for each reason.
func (r *run) tell(ctx context.Context, reason, message string) {
	kubelet.Warn(ctx, r.node.host.API(), r.pod.Load(), r.reported, reason, message)
}
