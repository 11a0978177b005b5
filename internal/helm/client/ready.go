package client

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// ready checks what Helm waits for as Helm does (kube.ReadyChecker); its log has the reason. Jobs are
// checked by their conditions, and definitions are ready when their kinds are served, too: Helm continues
// when they are established, and may then find "no matches for kind".
func (c *client) ready(jobs bool) check {
	var reason string

	checker := kube.NewReadyChecker(c.s.clients, func(format string, args ...any) {
		reason = fmt.Sprintf(format, args...)
	}, kube.PausedAsReady(true))

	return func(ctx context.Context, info *resource.Info) (string, error) {
		versioned := kube.AsVersioned(info)
		if _, is := versioned.(*batchv1.Job); is {
			if !jobs {
				return "", nil
			}

			return c.job(ctx, info, func(*resource.Info) (string, error) { return "the Job does not exist", nil })
		}

		reason = "not ready"

		is, err := checker.IsReady(ctx, info)

		switch {
		case apierrors.IsNotFound(err):
			return "the object does not exist", c.namespaceGone(ctx, info)
		case err != nil:
			return "", err
		case !is:
			return ofIt(info, reason), nil
		}

		if reason, err := c.noneReady(ctx, info); reason != "" || err != nil {
			return reason, err
		}

		return c.served(versioned)
	}
}

// ofIt removes the object, which is reported anyway, from a reason of Helm's checker, such as "Deployment is not
// ready: prod/web. 0 out of 1 expected pods are ready".
func ofIt(info *resource.Info, reason string) string {
	rest, is := strings.CutPrefix(reason, info.Mapping.GroupVersionKind.Kind+" ")
	if !is {
		return reason
	}

	return "it " + strings.Replace(rest, fmt.Sprintf(": %s/%s", info.Namespace, info.Name), "", 1)
}

// noneReady reports a DaemonSet without any ready pod. Helm counts one that may miss all its pods as ready from
// the start (kube.ReadyChecker.daemonSetReady: maxUnavailable is 1 by default). Then objects that depend on the
// network plugin of a one-node cluster would not wait for it.
func (c *client) noneReady(ctx context.Context, info *resource.Info) (reason string, err error) {
	if _, is := kube.AsVersioned(info).(*appsv1.DaemonSet); !is {
		return "", nil
	}

	set, err := c.s.clients.AppsV1().DaemonSets(info.Namespace).Get(ctx, info.Name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}

	if status := set.Status; status.DesiredNumberScheduled > 0 && status.NumberReady == 0 {
		return fmt.Sprintf("none of %d pods is ready", status.DesiredNumberScheduled), nil
	}

	return "", nil
}

// namespaceGone returns a permanent error when the namespace of an object is being deleted or is gone.
func (c *client) namespaceGone(ctx context.Context, info *resource.Info) error {
	if info.Namespace == "" {
		return nil
	}

	namespace, err := c.s.clients.CoreV1().Namespaces().Get(ctx, info.Namespace, metav1.GetOptions{})

	switch {
	case apierrors.IsNotFound(err):
		return wait.Permanent(fmt.Errorf("the namespace %s is gone", info.Namespace))
	case err != nil:
		// Without the right to read namespaces, the wait lasts until the timeout.
		return nil //nolint:nilerr // the reason that counts is that of the object
	case namespace.DeletionTimestamp != nil:
		return wait.Permanent(fmt.Errorf("the namespace %s is being deleted", info.Namespace))
	}

	return nil
}

// served reports why the kinds of a definition cannot be used yet.
func (c *client) served(versioned runtime.Object) (reason string, err error) {
	definition, is := versioned.(*apiextensionsv1.CustomResourceDefinition)
	if !is {
		return "", nil
	}

	kind := schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}

	for _, version := range definition.Spec.Versions {
		if !version.Served {
			continue
		}

		_, err := c.s.getter.mapper.RESTMapping(kind, version.Name)
		if meta.IsNoMatchError(err) {
			return "the API does not serve its kind yet", nil
		}

		if err != nil {
			return "", err
		}
	}

	return "", nil
}

// hook checks an object of a hook.
func (c *client) hook(ctx context.Context, info *resource.Info) (reason string, err error) {
	switch kube.AsVersioned(info).(type) {
	case *batchv1.Job:
		return c.job(ctx, info, c.deletedEarly)
	case *corev1.Pod:
		return c.pod(ctx, info)
	}

	return "", nil
}

// deletedEarly is a hook that was deleted before it was seen to end, as by its ttlSecondsAfterFinished. To
// Helm it has ended well (kube.Client.watchUntilReady, watch.Deleted).
func (c *client) deletedEarly(info *resource.Info) (string, error) {
	c.s.note(reference(info).String() + " was deleted before its end was observed; it counts as succeeded")

	return "", nil
}

// pod checks a Pod that has to succeed.
func (c *client) pod(ctx context.Context, info *resource.Info) (reason string, err error) {
	pod, err := c.s.clients.CoreV1().Pods(info.Namespace).Get(ctx, info.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return c.deletedEarly(info)
	}

	if err != nil {
		return "", err
	}

	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return "", nil
	case corev1.PodFailed:
		return failed(info, pod.Status.Reason, pod.Status.Message)
	case corev1.PodPending, corev1.PodRunning, corev1.PodUnknown:
	}

	return "it is " + string(pod.Status.Phase), nil
}

// job checks a Job that has to complete. The gone callback is asked about a Job that does not exist and whose
// result is unknown.
func (c *client) job(
	ctx context.Context, info *resource.Info, gone func(*resource.Info) (string, error),
) (reason string, err error) {
	job, err := c.s.clients.BatchV1().Jobs(info.Namespace).Get(ctx, info.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return c.ended(ctx, info, gone)
	}

	if err != nil {
		return "", err
	}

	for _, condition := range job.Status.Conditions {
		switch {
		case condition.Status != corev1.ConditionTrue:
		case condition.Type == batchv1.JobComplete:
			return "", nil
		case condition.Type == batchv1.JobFailed:
			return failed(info, condition.Reason, condition.Message)
		}
	}

	return fmt.Sprintf("it has not completed: %d active, %d succeeded, %d failed", job.Status.Active, job.Status.Succeeded,
		job.Status.Failed), nil
}

// ends are the reasons of the events in which the Job controller says how a Job ended
// (Kubernetes 1.36, job.Controller.recordJobFinished: that of the condition).
var ends = []string{
	batchv1.JobReasonBackoffLimitExceeded, batchv1.JobReasonDeadlineExceeded, batchv1.JobReasonPodFailurePolicy,
	batchv1.JobReasonFailedIndexes, batchv1.JobReasonMaxFailedIndexesExceeded,
}

// ended checks a Job that is gone by its events. One with a ttlSecondsAfterFinished is deleted soon after its end.
func (c *client) ended(
	ctx context.Context, info *resource.Info, gone func(*resource.Info) (string, error),
) (reason string, err error) {
	uid := uidOf(info)
	if uid == "" {
		return gone(info)
	}

	events, err := c.s.clients.CoreV1().Events(info.Namespace).List(ctx,
		metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(uid)})
	if err != nil {
		return "", err
	}

	for _, event := range events.Items {
		switch {
		case event.Type == corev1.EventTypeNormal && event.Reason == "Completed":
			return "", nil
		case event.Type == corev1.EventTypeWarning && slices.Contains(ends, event.Reason):
			return failed(info, event.Reason, event.Message)
		}
	}

	if err := c.namespaceGone(ctx, info); err != nil {
		return "", err
	}

	return gone(info)
}

// failed is the result for an object that can only be recreated.
func failed(info *resource.Info, because ...string) (reason string, err error) {
	for _, text := range because {
		if text != "" {
			reason += ": " + text
		}
	}

	return "it has failed" + reason, wait.Permanent(fmt.Errorf("%s failed%s", reference(info), reason))
}

// deleted checks an object that is being deleted.
func (c *client) deleted(ctx context.Context, info *resource.Info) (reason string, err error) {
	over, uid := c.s.isForeignOrDeleted(info)
	if over {
		return "", nil
	}

	live, err := c.s.objects.Resource(info.Mapping.Resource).Namespace(info.Namespace).Get(ctx, info.Name,
		metav1.GetOptions{})

	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	case uid != "" && live.GetUID() != uid:
		return "", nil
	case live.GetDeletionTimestamp() == nil:
		return "it is not being deleted", nil
	case len(live.GetFinalizers()) > 0:
		return fmt.Sprintf("it is being deleted, and waits for its finalizers: %v", live.GetFinalizers()),
			nil
	}

	return "it is being deleted", nil
}

func uidOf(info *resource.Info) types.UID {
	object, err := meta.Accessor(info.Object)
	if err != nil {
		return ""
	}

	return object.GetUID()
}
