package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// errPending is for wait.Until: there is something left to wait for.
var errPending = errors.New("objects are not ready")

// earlier is how much shorter the first pause of a wait is: much is ready, or gone, at once.
const earlier = 20

// check observes an object: the reason why it is not ready, empty when it is, and, as an error, why
// that could not be found out. A permanent error ends the wait.
type check func(ctx context.Context, info *resource.Info) (reason string, err error)

// waiting is a wait for objects until all of them are ready at the same time.
type waiting struct {
	c     *client
	check check
	// hook is whether the awaited object is a hook of the chart.
	hook bool
	all  []*object
	// pending are those that were not ready when they were observed.
	pending []*object
}

// object that is waited for, with the last reason why it is not ready.
type object struct {
	info   *resource.Info
	reason string
}

// Wait implements kube.Interface. Jobs are no reason to wait. No timeout, 0, leaves it to the
// context of the session.
func (c *client) Wait(resources kube.ResourceList, timeout time.Duration) error {
	return c.await(resources, timeout, waiting{check: c.ready(false)})
}

// WaitWithJobs implements kube.Interface: Wait until Jobs are complete, too.
func (c *client) WaitWithJobs(resources kube.ResourceList, timeout time.Duration) error {
	return c.await(resources, timeout, waiting{check: c.ready(true)})
}

// WatchUntilReady implements kube.Interface: hooks that are Jobs or Pods have to end well. To others
// it is enough to exist, as to Helm (kube.Client.watchUntilReady).
func (c *client) WatchUntilReady(resources kube.ResourceList, timeout time.Duration) error {
	return c.await(resources, timeout, waiting{check: c.hook, hook: true})
}

// WaitForDelete implements kube.InterfaceExt. Objects that were foreign are not waited for.
func (c *client) WaitForDelete(resources kube.ResourceList, timeout time.Duration) error {
	return c.await(resources, timeout, waiting{check: c.deleted})
}

// WaitAndGetCompletedPodPhase implements kube.Interface.
func (c *client) WaitAndGetCompletedPodPhase(name string, timeout time.Duration) (corev1.PodPhase, error) {
	ctx, cancel := c.within(timeout)
	defer cancel()

	phase := corev1.PodUnknown

	err := c.s.place.without(c.s.ctx, func() error {
		return wait.Until(ctx, c.s.o.Pause, func(ctx context.Context) error {
			pod, err := c.s.clients.CoreV1().Pods(c.s.o.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return permanent(err)
			}

			if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
				return errPending
			}

			phase = pod.Status.Phase

			return nil
		})
	})

	return phase, err
}

// within bounds a wait.
func (c *client) within(timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return context.WithCancel(c.s.ctx)
	}

	return context.WithTimeoutCause(c.s.ctx, timeout, fmt.Errorf("timed out after %s", timeout))
}

// await waits until a check finds every object ready, while others have the slot. Its error is a
// *NotReadyError, unless only the slot could not be had again.
func (c *client) await(resources kube.ResourceList, timeout time.Duration, w waiting) error {
	if len(resources) == 0 {
		return nil
	}

	w.c = c
	for _, info := range resources {
		w.all = append(w.all, &object{info: info})
	}

	w.pending = w.all

	return c.s.place.without(c.s.ctx, func() error {
		ctx, cancel := c.within(timeout)
		defer cancel()

		err := wait.Backoff(ctx, c.s.o.Pause/earlier, c.s.o.Pause, w.pass)
		if err == nil {
			return nil
		}

		if !wait.IsPermanent(err) {
			err = ending(ctx)
		}

		return w.failed(err)
	})
}

// pass observes the objects that were not ready, and, once all of them are, all objects once more: the first ones
// may no longer be ready. Helm observes all objects each time, and stops at the first that is not ready, so it
// cannot report the others (kube.waiter).
func (w *waiting) pass(ctx context.Context) error {
	again := len(w.pending) < len(w.all)

	if err := w.observe(ctx); err != nil {
		return err
	}

	if len(w.pending) == 0 && again {
		w.pending = w.all

		if err := w.observe(ctx); err != nil {
			return err
		}
	}

	if len(w.pending) > 0 {
		return errPending
	}

	return nil
}

// observe runs the check on the pending objects. When the API does not answer, it skips the remaining objects:
// each request would take its full timeout.
func (w *waiting) observe(ctx context.Context) error {
	var pending []*object

	for i, o := range w.pending {
		reason, err := w.check(ctx, o.info)
		if err != nil && ctx.Err() != nil {
			return errPending
		}

		if err != nil {
			err = permanent(err)
			reason = cmp.Or(reason, err.Error())
		}

		if o.reason = reason; reason != "" {
			pending = append(pending, o)
		}

		if wait.IsPermanent(err) {
			w.pending = append(pending, w.pending[i+1:]...)

			return err
		}

		if errors.Is(err, api.ErrNoAnswer) {
			pending = append(pending, w.pending[i+1:]...)

			break
		}
	}

	w.pending = pending

	return nil
}

// permanent marks API refusals that a retry cannot change as permanent. "Not found" is not one of them: another
// client may be replacing the object.
func permanent(err error) error {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		return err
	}

	switch code := api.Status().Code; {
	case code < http.StatusBadRequest, code >= http.StatusInternalServerError:
		return err
	case code == http.StatusNotFound, code == http.StatusConflict, code == http.StatusTooManyRequests,
		code == http.StatusRequestTimeout:
		return err
	}

	return wait.Permanent(err)
}
