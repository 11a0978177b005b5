package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/kube"
	helmrelease "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgo "k8s.io/client-go/kubernetes"

	"github.com/talosop/terraform-provider-talosop/internal/helm/client"
	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Remove uninstalls a release, with what its failed revisions left behind. It is idempotent, finishes an
// interrupted removal, and succeeds when the release is gone. Objects that moved to another release stay, as do
// definitions of the crds folder, objects with a keep policy, and the namespace.
//
// The error is [kubernetes.ErrNoAnswer] when the cluster cannot be reached to begin with, [ErrBusy] while another
// client works on the release, and a [FailedError] when the removal did not finish.
func (c *Cluster) Remove(ctx context.Context, name Name, o RemoveOptions) error {
	// The request for the Lease would be retried until ctx ends.
	before, err := c.Observe(ctx, name)
	if err == nil {
		err = c.holding(ctx, name, func(ctx context.Context) error { return c.remove(ctx, name, before, o) })
	}

	if err != nil {
		return redactError(err, o.Secrets.Redact)
	}

	if err := c.dropLease(ctx, name); err != nil {
		// It is free, and the next run takes it; the release is gone.
		c.tell(name, o.Secrets.Redact("the Lease of the release was not deleted: "+err.Error()))
	}

	return nil
}

func (c *Cluster) remove(ctx context.Context, name Name, before Observation, o RemoveOptions) error {
	have, err := c.observeHeld(ctx, name, before)
	if err != nil {
		return err
	}

	last, exists := have.Last()
	want := Wanted{Name: name, Held: true, Timeout: o.Timeout}

	switch {
	case !exists:
		return nil
	case last.Status == Unreadable:
		return unreadable(want, last).Error()
	case last.Status != Uninstalling && inProgress(last) && !abandoned(want, last, time.Now()):
		return busy(want, last, time.Now()).Error()
	}

	err = c.dismantle(ctx, name, have, o)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}

	if err != nil {
		failure := &FailedError{Name: name, Verb: "uninstall", Cause: err, Next: "Remove it again to continue."}

		if hook := (*hookError)(nil); errors.As(err, &hook) {
			failure.Next = "The uninstall did not start. Remove it again to rerun the hook; or set disable_hooks = true, " +
				"apply, and remove it without hooks."
		}

		return failure
	}

	if o.KeepHistory {
		return nil
	}

	return c.forget(ctx, name, have)
}

// dismantle removes all objects. The records stay until the objects are gone, so that an interrupted removal knows
// the rest.
func (c *Cluster) dismantle(ctx context.Context, name Name, have Observation, o RemoveOptions) error {
	last, _ := have.Last()
	gone := last.Objects

	if last.Status != Uninstalled {
		s, err := c.open(ctx, name, o.Secrets.Redact)
		if err != nil {
			return err
		}
		defer s.Close()

		left, err := c.blockingHooks(ctx, name, last)
		if err != nil {
			return err
		}

		tell := func(format string, args ...any) { c.tell(name, fmt.Sprintf(format, args...)) }
		keeping := o
		keeping.KeepHistory, keeping.forgets = true, !o.KeepHistory
		keeping.newest = recordName(name.Name, last.Number)

		if err := s.Work(func() error { return uninstallAgain(s, name, keeping, left, tell) }); err != nil {
			return err
		}

		gone = nil
	}

	others, err := c.removeOwn(ctx, name, beside(have))
	if err != nil || !o.Wait {
		return err
	}

	return c.awaitGone(ctx, name, slices.Concat(gone, others), o.Timeout, ours)
}

// blockingHooks of a removal are those of one that was interrupted, and of a revision that failed.
func (c *Cluster) blockingHooks(ctx context.Context, name Name, last Revision) ([]hookLeft, error) {
	if last.Status == Deployed {
		return nil, nil
	}

	return c.hooksLeft(ctx, name)
}

// beside are the objects that revisions other than the newest one may have left, such as those of the deployed one
// when the newest one failed. Helm removes only those of the newest one (Helm 3.21, action/uninstall.go,
// deleteRelease).
func beside(have Observation) []diff.Object {
	last, _ := have.Last()
	known := map[diff.Key]bool{}

	for _, o := range last.Objects {
		known[o.Key()] = true
	}

	var found []diff.Object

	for _, r := range have.History[:len(have.History)-1] {
		for _, o := range r.Objects {
			if !known[o.Key()] && !o.Kept && o.Kind != definitionKind {
				known[o.Key()] = true
				found = append(found, o)
			}
		}
	}

	return found
}

// uninstall calls Helm.
func uninstall(s *client.Session, name Name, o RemoveOptions) error {
	return uninstallAgain(s, name, o, nil, nil)
}

// uninstallAgain calls Helm after an attempt that left hooks, and reports them to done.
func uninstallAgain(
	s *client.Session, name Name, o RemoveOptions, left []hookLeft, done func(format string, args ...any),
) error {
	cfg := s.Configuration()
	cfg.Releases.Driver = &removing{Driver: cfg.Releases.Driver, newest: o.newest, forgets: o.forgets,
		former: map[string]helmrelease.Status{}}

	able, err := changingOf(cfg.KubeClient)
	if err != nil {
		return err
	}

	if len(left) > 0 {
		able = &renewing{changing: able, name: name, timeout: cmp.Or(o.Timeout, defaultTimeout), hooks: left, done: done}
	}

	deletes := &deletions{changing: able}
	cfg.KubeClient = deletes

	u := action.NewUninstall(cfg)
	u.KeepHistory, u.DisableHooks, u.Wait, u.DeletionPropagation = o.KeepHistory, o.DisableHooks, o.Wait, o.Propagation
	u.Timeout = cmp.Or(o.Timeout, defaultTimeout)

	_, err = u.Run(name.Name)
	if err != nil && !deletes.begun && s.Failure() != nil {
		err = &hookError{err}
	}

	return errors.Join(err, errors.Join(deletes.errs...), s.RecordError())
}

// deletions keeps the reasons why objects could not be deleted, which Helm only logs (Helm 3.21,
// action/uninstall.go, Run).
type deletions struct {
	changing

	// begun is whether the hooks before the objects have run.
	begun bool
	errs  []error
}

// hookError is a removal that did not begin because a hook before it failed.
type hookError struct{ error }

// Unwrap returns Helm's error.
func (e *hookError) Unwrap() error { return e.error }

// DeleteWithPropagationPolicy implements kube.InterfaceDeletionPropagation.
func (d *deletions) DeleteWithPropagationPolicy(
	resources kube.ResourceList, policy metav1.DeletionPropagation,
) (*kube.Result, []error) {
	d.begun = true
	result, errs := d.changing.DeleteWithPropagationPolicy(resources, policy)
	d.errs = append(d.errs, errs...)

	return result, errs
}

// ours reports whether an object still belongs to the release.
func ours(live map[string]any, name Name) bool {
	owner, _ := ownerOf(live)

	return owner == name && (&unstructured.Unstructured{
		Object: live}).GetAnnotations()[kube.ResourcePolicyAnno] != kube.KeepPolicy
}

// leaving reports whether an object is being deleted.
func leaving(live map[string]any, _ Name) bool {
	return (&unstructured.Unstructured{Object: live}).GetDeletionTimestamp() != nil
}

// awaitGone waits until none of the objects is there any more that counts.
func (c *Cluster) awaitGone(
	ctx context.Context, name Name, objects []diff.Object, timeout time.Duration,
	counts func(live map[string]any, name Name) bool,
) error {
	timeout = cmp.Or(timeout, defaultTimeout)

	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %s", timeout))
	defer cancel()

	err := wait.Until(ctx, c.pause(), func(ctx context.Context) error {
		var remaining []string

		err := c.observeEach(ctx, objects, func(o diff.Object, live map[string]any) {
			if live == nil || o.Kept || !counts(live, name) {
				return
			}

			text := o.String()
			if finalizers := (&unstructured.Unstructured{Object: live}).GetFinalizers(); len(finalizers) > 0 {
				text += fmt.Sprintf(" (finalizers: %s)", strings.Join(finalizers, ", "))
			}

			remaining = append(remaining, text)
		})
		if err != nil || len(remaining) == 0 {
			return err
		}

		slices.Sort(remaining)

		return fmt.Errorf("still present: %s", strings.Join(remaining, ", "))
	})
	if err != nil {
		return fmt.Errorf("wait for the deletion of objects: %w", err)
	}

	return nil
}

// forget deletes the records of a release, those that cannot be read too, the newest one last: as
// long as it is there, an interrupted removal can be repeated.
func (c *Cluster) forget(ctx context.Context, name Name, have Observation) error {
	remove := func(ctx context.Context, record recordVersion) error {
		err := c.API.RequestDeletion(ctx, objects.Reference{
			APIVersion: "v1", Kind: "Secret", Namespace: name.Namespace, Name: record.name}, "")
		if err != nil {
			return fmt.Errorf("delete the history of release %s: %w", name, err)
		}

		return nil
	}

	last := len(have.records) - 1
	group, within := panics.WithContext(ctx)
	group.SetLimit(atOnce)

	for _, record := range have.records[:last] {
		group.Go(func() error { return remove(within, record) })
	}

	if err := group.Wait(); err != nil {
		return err
	}

	return remove(ctx, have.records[last])
}

// dropLease deletes the Lease of a release that is gone, unless another run took it.
func (c *Cluster) dropLease(ctx context.Context, name Name) error {
	client, err := clientgo.NewForConfig(c.API.Config(ctx))
	if err != nil {
		return fmt.Errorf("connect to the Kubernetes API: %w", err)
	}

	leases := client.CoordinationV1().Leases(metav1.NamespaceSystem)

	lease, err := leases.Get(ctx, leaseOf(name), metav1.GetOptions{})

	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read the Lease of release %s: %w", name, err)
	case lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "":
		return nil
	}

	err = leases.Delete(ctx, lease.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete the Lease of release %s: %w", name, err)
	}

	return nil
}
