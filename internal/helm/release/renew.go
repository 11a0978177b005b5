package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	helmrelease "helm.sh/helm/v3/pkg/release"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
)

// changing is a client as Helm's installations, upgrades and removals need it.
type changing interface {
	kube.Interface
	kube.InterfaceExt
	kube.InterfaceThreeWayMerge
	kube.InterfaceDeletionPropagation
}

func changingOf(client kube.Interface) (changing, error) {
	able, is := client.(changing)
	if !is {
		return nil, errors.New("the client of the session lacks functions of the Helm client")
	}

	return able, nil
}

// renewing is a client that deletes leftovers of a failed revision that would block the next one for ever, at the
// moment when Helm is about to create the object.
//
// A hook is created and never patched, and a failed one stays unless its policy says otherwise. Without
// before-hook-creation every later attempt ends with "already exists" (Helm 3.21, action/hooks.go, execHook). A
// patch does not run a failed Job again, and most of a Job cannot be patched (Kubernetes 1.36, batch/validation,
// ValidateJobSpecUpdate).
type renewing struct {
	changing

	name    Name
	timeout time.Duration
	hooks   []hookLeft
	// jobs is whether failed Jobs run again.
	jobs bool
	done func(format string, args ...any)
}

// hookLeft is a hook that a revision has begun, and that may still be there.
type hookLeft struct {
	diff.Object

	revision int
	// since is when the record of the revision was made, by the clock that times of objects are of.
	since time.Time
}

// renewing makes an attempt's client one. It is to be called before Helm changes the records.
func (r *run) renewing(ctx context.Context, a *attempt, have Observation) error {
	if len(failures(have.History)) == 0 {
		return nil
	}

	client, err := changingOf(a.cfg.KubeClient)
	if err != nil {
		return err
	}

	hooks, err := r.cluster.hooksLeft(ctx, r.spec.Name)
	if err != nil {
		return err
	}

	a.cfg.KubeClient = &renewing{
		changing: client, name: r.spec.Name, timeout: r.spec.Options.timeout(), hooks: hooks, jobs: true, done: r.done,
	}

	return nil
}

// hooksLeft are the hooks that revisions may have left which failed, or whose removal did. Those stay
// failed in the history whatever follows them (Helm 3.21, action/install.go, replaceRelease).
func (c *Cluster) hooksLeft(ctx context.Context, name Name) ([]hookLeft, error) {
	secrets, err := c.records(ctx, name)
	if err != nil {
		return nil, err
	}

	var left []hookLeft

	for _, secret := range secrets {
		object := &unstructured.Unstructured{Object: secret}

		read, err := decodeRecord(object)
		if err != nil {
			// Such a revision is unreadable, which was reported already.
			continue
		}

		begun := slices.DeleteFunc(slices.Clone(read.Hooks),
			func(h *helmrelease.Hook) bool { return !mayBeLeft(read.Info.Status, h) })

		objects, err := hooksOf(begun, name.Namespace)
		if err != nil {
			return nil, err
		}

		for _, o := range objects {
			left = append(left, hookLeft{Object: o, revision: read.Version, since: object.GetCreationTimestamp().Time})
		}
	}

	// Of two the newer one is there.
	slices.SortStableFunc(left, func(a, b hookLeft) int { return cmp.Compare(b.revision, a.revision) })

	return left, nil
}

// mayBeLeft reports whether a revision has begun a hook, and then failed. The begin is recorded before the
// object is made.
func mayBeLeft(status helmrelease.Status, h *helmrelease.Hook) bool {
	unfinished := status == helmrelease.StatusFailed || status == helmrelease.StatusUninstalling || status.IsPending()

	return unfinished && !h.LastRun.StartedAt.IsZero() && h.Kind != definitionKind
}

// is whether an object that Helm is about to make has the name of a hook.
func (h hookLeft) is(info *resource.Info) bool {
	kind, key := info.Mapping.GroupVersionKind, h.Key()

	return key.Group == kind.Group && key.Kind == kind.Kind && key.Name == info.Name &&
		(key.Namespace == info.Namespace || info.Namespace == "")
}

// made reports whether an object is certain to be what the revision made: Helm does not write on hooks whose
// they are. Charts do, in labels mostly; and nothing that was there before the revision is of it.
func (h hookLeft) made(live *unstructured.Unstructured) bool {
	if _, others := ownerOf(live.Object); others || live.GetCreationTimestamp().Time.Before(h.since) {
		return false
	}

	wanted := unstructured.Unstructured{Object: h.Content}
	_, hook := live.GetAnnotations()[helmrelease.HookAnnotation]

	return hook && includes(live.GetLabels(), wanted.GetLabels()) &&
		includes(live.GetAnnotations(), wanted.GetAnnotations())
}

func includes(all, some map[string]string) bool {
	return labels.SelectorFromSet(some).Matches(labels.Set(all))
}

// Create implements kube.Interface. Helm makes hooks one by one.
func (c *renewing) Create(resources kube.ResourceList) (*kube.Result, error) {
	if err := c.clear(resources, c.hook); err != nil {
		return &kube.Result{}, err
	}

	return c.changing.Create(resources)
}

// Update implements kube.Interface.
func (c *renewing) Update(original, target kube.ResourceList, force bool) (*kube.Result, error) {
	if err := c.clear(target, c.job); err != nil {
		return &kube.Result{}, err
	}

	return c.changing.Update(original, target, force)
}

// UpdateThreeWayMerge implements kube.InterfaceThreeWayMerge.
func (c *renewing) UpdateThreeWayMerge(original, target kube.ResourceList, force bool) (*kube.Result, error) {
	if err := c.clear(target, c.job); err != nil {
		return &kube.Result{}, err
	}

	return c.changing.UpdateThreeWayMerge(original, target, force)
}

// hook returns why an object that blocks a hook has to be deleted.
func (c *renewing) hook(info *resource.Info, live *unstructured.Unstructured) string {
	for _, h := range c.hooks {
		if h.is(info) && h.made(live) {
			return fmt.Sprintf("a leftover hook of revision %d", h.revision)
		}
	}

	return ""
}

// job returns why a Job of the release has to be deleted.
func (c *renewing) job(_ *resource.Info, live *unstructured.Unstructured) string {
	if owner, _ := ownerOf(live.Object); owner != c.name || !hasFailed(live) {
		return ""
	}

	return "which had failed, to create it again"
}

// hasFailed reports whether a Job has ended without success (batch/v1, JobFailed).
func hasFailed(job *unstructured.Unstructured) bool {
	// A Job without such conditions has not failed.
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")

	return slices.ContainsFunc(conditions, func(condition any) bool {
		c, _ := condition.(map[string]any)

		return c["type"] == string(batchv1.JobFailed) && c["status"] == string(corev1.ConditionTrue)
	})
}

// clear deletes those objects that there is a reason for, and waits until they are gone.
func (c *renewing) clear(
	resources kube.ResourceList, why func(info *resource.Info, live *unstructured.Unstructured) string,
) error {
	for _, info := range resources {
		if !c.concerns(info) {
			continue
		}

		if err := c.clearOne(info, why); err != nil {
			return fmt.Errorf("remove leftovers of a failed revision: %w", err)
		}
	}

	return nil
}

// concerns reports whether an object is relevant.
func (c *renewing) concerns(info *resource.Info) bool {
	return c.jobs && info.Mapping.GroupVersionKind.GroupKind() == jobKind ||
		slices.ContainsFunc(c.hooks, func(h hookLeft) bool { return h.is(info) })
}

var jobKind = batchv1.SchemeGroupVersion.WithKind("Job").GroupKind()

func (c *renewing) clearOne(
	info *resource.Info, why func(info *resource.Info, live *unstructured.Unstructured) string,
) error {
	found, err := resource.NewHelper(info.Client, info.Mapping).Get(info.Namespace, info.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}

	if err != nil {
		return fmt.Errorf("read %s: %w", objectOf(info), err)
	}

	live, ok := found.(*unstructured.Unstructured)
	if !ok || live.GetAnnotations()[kube.ResourcePolicyAnno] == kube.KeepPolicy {
		return nil
	}

	reason := why(info, live)
	if reason == "" {
		return nil
	}

	if err := c.remove(info); err != nil {
		return err
	}

	c.done("removed %s, %s", objectOf(info), reason)

	return nil
}

// objectOf is an object's name for people.
func objectOf(info *resource.Info) diff.Object {
	return diff.Object{Kind: info.Mapping.GroupVersionKind.Kind, Namespace: info.Namespace, Name: info.Name}
}

// remove waits as the session does: other sessions use its slot meanwhile.
func (c *renewing) remove(info *resource.Info) error {
	list := kube.ResourceList{info}

	if _, errs := c.Delete(list); len(errs) > 0 {
		return errs[0]
	}

	return c.WaitForDelete(list, c.timeout)
}
