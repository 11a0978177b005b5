package client

import (
	"errors"
	"fmt"
	"sync"

	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/util/retry"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// ReleaseName and ReleaseNamespace are the annotations of objects that belong to a release
// (Helm 3.21, action/validate.go).
const (
	ReleaseName      = "meta.helm.sh/release-name"
	ReleaseNamespace = "meta.helm.sh/release-namespace"
)

// atOnce is how many objects of a kind are deleted at the same time.
const atOnce = 8

// unlessKept is for objects that a new manifest no longer has: Helm keeps those with a keep policy
// (kube.Client.update). whatever is for objects that the caller chose to delete.
func unlessKept(live metav1.Object) bool {
	return live.GetAnnotations()[kube.ResourcePolicyAnno] == kube.KeepPolicy
}

func whatever(metav1.Object) bool { return false }

// deleteEach deletes objects kind by kind, in their order as Helm does (kube.batchPerform). It continues after
// errors, and returns the objects that are deleted or were gone. Objects that belong to another release by now
// stay: they moved to it, and this release does not know.
func (c *client) deleteEach(resources kube.ResourceList, policy metav1.DeletionPropagation,
	keep func(metav1.Object) bool) (
	deleted kube.ResourceList, err error,
) {
	var (
		mu     sync.Mutex
		errs   []error
		batch  panics.Group
		before string
	)

	batch.SetLimit(atOnce)

	for _, info := range resources {
		if kind := info.Mapping.GroupVersionKind.Kind; kind != before {
			_ = batch.Wait()
			before = kind
		}

		batch.Go(func() error {
			gone, err := c.deleteOne(info, policy, keep)

			mu.Lock()
			defer mu.Unlock()

			if err != nil {
				errs = append(errs, fmt.Errorf("delete %s: %w", reference(info), err))
			} else if gone {
				deleted = append(deleted, info)
			}

			return nil
		})
	}

	_ = batch.Wait()

	return deleted, errors.Join(errs...)
}

// deleteOne deletes the object that it read and no other: one that takes its name in between is
// read again.
func (c *client) deleteOne(
	info *resource.Info, policy metav1.DeletionPropagation, keep func(metav1.Object) bool,
) (gone bool, err error) {
	helper := resource.NewHelper(info.Client, info.Mapping)

	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		gone = false

		found, err := helper.Get(info.Namespace, info.Name)
		if err != nil {
			return err
		}

		live, err := meta.Accessor(found)
		if err != nil || keep(live) || c.isForeign(info, live) {
			return err
		}

		gone = true
		uid := live.GetUID()
		c.s.remember(info, uid)

		left, err := helper.DeleteWithOptions(info.Namespace, info.Name, &metav1.DeleteOptions{
			PropagationPolicy: &policy, Preconditions: metav1.NewUIDPreconditions(string(uid)),
		})
		// The server answers with a Status when nothing is left of the object, or else with the rest of it. For
		// some kinds it sends the object even when it is gone (Kubernetes 1.36,
		// registry/generic/registry/store.go, finalizeDelete).
		if _, none := left.(*metav1.Status); none && err == nil {
			c.s.rememberGone(info)
		}

		return err
	})
	if apierrors.IsNotFound(err) {
		return true, nil
	}

	return gone && err == nil, err
}

// isForeign reports whether an object belongs to another release, and records it.
func (c *client) isForeign(info *resource.Info, live metav1.Object) bool {
	o, annotations := c.s.o, live.GetAnnotations()
	owner, owned := annotations[ReleaseName]

	if o.Release == "" || !owned || owner == o.Release && annotations[ReleaseNamespace] == o.Namespace {
		return false
	}

	text := fmt.Sprintf("%s: it belongs to the release %s/%s", reference(info), annotations[ReleaseNamespace], owner)

	c.s.mu.Lock()
	c.s.foreign[identify(info)] = c.s.o.Redact(text)
	c.s.mu.Unlock()

	c.s.note(text + " now and is not deleted")

	return true
}

// remember records which object was deleted, to distinguish it from a later one of the same name.
func (s *Session) remember(info *resource.Info, uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()

	delete(s.foreign, identify(info))
	delete(s.gone, identify(info))
	s.deleted[identify(info)] = uid
}

// rememberGone that nothing is left of an object that was deleted.
func (s *Session) rememberGone(info *resource.Info) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.gone[identify(info)] = true
}

// isForeignOrDeleted reports whether to skip the wait for an object, because it is foreign or known to be gone. It
// also returns which object of its name was deleted.
func (s *Session) isForeignOrDeleted(info *resource.Info) (over bool, deleted types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()

	_, stays := s.foreign[identify(info)]

	return stays || s.gone[identify(info)], s.deleted[identify(info)]
}

// reference names an object in texts.
func reference(info *resource.Info) objects.Reference {
	apiVersion, kind := info.Mapping.GroupVersionKind.ToAPIVersionAndKind()

	return objects.Reference{APIVersion: apiVersion, Kind: kind, Namespace: info.Namespace, Name: info.Name}
}
