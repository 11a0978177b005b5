package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

const (
	// objectManager is the field manager of objects that are talosop's own. Those of Talos
	// have Talos's, see [Objects.SyncManifests].
	objectManager = "talosop"
	// objectPause is the time between two requests in a wait for an object, and between two that no server
	// answers, after shortPause at first.
	objectPause = 500 * time.Millisecond
	shortPause  = 20 * time.Millisecond
	// objectBound is how long a request that no server answers is repeated.
	objectBound = time.Minute
)

// Objects are those of one cluster, of any kind that its API serves. It is safe for concurrent use.
type Objects struct {
	api   *api.Client
	kinds kinds
}

// New is for the cluster of a client; it does no I/O.
func New(c *api.Client) *Objects { return &Objects{api: c} }

// attempt is requests that are one, and that no server answered if it answered none of them.
type attempt struct {
	objects *Objects
	*api.Failover
}

// Reference names an object of any kind that the API serves. Namespace is empty for kinds that have none; a given
// one is ignored. Where a kind is served is requested once for each version of a group. A kind that is not served
// makes every request for it fail with a *meta.NoKindMatchError.
type Reference struct{ APIVersion, Kind, Namespace, Name string }

// String returns a text such as "CronJob backups/nightly".
func (r Reference) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}

	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// ReferenceTo names an object as the API has it, decoded from JSON.
func ReferenceTo(object map[string]any) Reference {
	u := unstructured.Unstructured{Object: object}

	return Reference{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// ApplyObject makes an object match the given one, with server-side apply as the field manager talosop, and
// returns what the API has now. It leaves fields that are not given to their owners, and removes fields that were
// given the last time. It is idempotent, retries what no server answers for a minute (api.ErrNoAnswer), and takes
// over fields that others manage.
func (o *Objects) ApplyObject(ctx context.Context, object map[string]any) (map[string]any, error) {
	var applied map[string]any

	err := o.insist(ctx, func(ctx context.Context, try *attempt) (err error) {
		applied, err = try.apply(ctx, object, false)

		return err
	})
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", ReferenceTo(object), err)
	}

	return applied, nil
}

// GetObject reads an object, nil when there is none.
func (o *Objects) GetObject(ctx context.Context, ref Reference) (map[string]any, error) {
	try := &attempt{o, o.api.Library(ctx)}

	found, err := try.get(ctx, ref)

	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // no object is neither an error nor an object
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", ref, try.Answered(err))
	}

	return found.Object, nil
}

// CreateObject creates an object that must not exist. It retries nothing: after an error, the caller first checks
// whether the object exists.
func (o *Objects) CreateObject(ctx context.Context, object map[string]any) (map[string]any, error) {
	ref, try := ReferenceTo(object), &attempt{o, o.api.Library(ctx)}

	var created *unstructured.Unstructured

	err := try.on(ctx, ref, func(resources dynamic.ResourceInterface) (err error) {
		created, err = resources.Create(ctx, &unstructured.Unstructured{Object: object},
			metav1.CreateOptions{FieldManager: objectManager})

		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", ref, try.Answered(err))
	}

	return created.Object, nil
}

// ListObjects reads the objects of a kind in the namespace of ref, whose name does not matter,
// that have the labels of a selector.
func (o *Objects) ListObjects(ctx context.Context, ref Reference, selector string) ([]map[string]any, error) {
	try := &attempt{o, o.api.Library(ctx)}

	var list *unstructured.UnstructuredList

	err := try.on(ctx, ref, func(resources dynamic.ResourceInterface) (err error) {
		list, err = resources.List(ctx, metav1.ListOptions{LabelSelector: selector})

		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list every %s of %s: %w", ref.Kind, ref.Namespace, try.Answered(err))
	}

	var objects []map[string]any
	for _, item := range list.Items {
		objects = append(objects, item.Object)
	}

	return objects, nil
}

// DeleteObject removes an object, and what depends on it goes in the background. It returns
// once the object is gone, or replaced by another of its name. Idempotent. With a uid, only that
// object is removed.
func (o *Objects) DeleteObject(ctx context.Context, ref Reference, uid string) error {
	if err := o.RequestDeletion(ctx, ref, uid); err != nil {
		return err
	}

	err := wait.Backoff(ctx, shortPause, objectPause, func(ctx context.Context) error {
		found, err := o.GetObject(ctx, ref)
		if err != nil {
			return Final(err)
		}

		if found == nil || uid != "" && UIDOf(found) != uid {
			return nil
		}

		return fmt.Errorf("the object still exists; finalizers: %v",
			(&unstructured.Unstructured{Object: found}).GetFinalizers())
	})
	if err != nil {
		return fmt.Errorf("delete %s: %w", ref, err)
	}

	return nil
}

// RequestDeletion is [Objects.DeleteObject] without the wait for the object to be gone, which
// takes a namespace many seconds.
func (o *Objects) RequestDeletion(ctx context.Context, ref Reference, uid string) error {
	options := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}

	if uid != "" {
		options.Preconditions = metav1.NewUIDPreconditions(uid)

		// The API answers a uid that is not that of the object with a conflict, and those are
		// repeated.
		found, err := o.GetObject(ctx, ref)
		if err != nil {
			return err
		}

		if found == nil || UIDOf(found) != uid {
			return nil
		}
	}

	err := o.insist(ctx, func(ctx context.Context, try *attempt) error {
		return try.on(ctx, ref, func(resources dynamic.ResourceInterface) error {
			return resources.Delete(ctx, ref.Name, options)
		})
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s: %w", ref, err)
	}

	return nil
}

// PatchObject changes an object with a merge patch, or with a list of JSON 6902 operations, in JSON. It does not
// retry.
func (o *Objects) PatchObject(ctx context.Context, ref Reference, patch []byte) error {
	kind, try := types.MergePatchType, &attempt{o, o.api.Library(ctx)}
	if bytes.HasPrefix(bytes.TrimSpace(patch), []byte("[")) {
		kind = types.JSONPatchType
	}

	err := try.on(ctx, ref, func(resources dynamic.ResourceInterface) error {
		_, err := resources.Patch(ctx, ref.Name, kind, patch, metav1.PatchOptions{FieldManager: objectManager})

		return err
	})
	if err != nil {
		return fmt.Errorf("patch %s: %w", ref, try.Answered(err))
	}

	return nil
}

// UIDOf is the uid of an object as the API has it.
func UIDOf(object map[string]any) string {
	return string((&unstructured.Unstructured{Object: object}).GetUID())
}

// insist repeats a request that no server answers.
func (o *Objects) insist(ctx context.Context, request func(ctx context.Context, try *attempt) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, objectBound, fmt.Errorf("timed out after %s", objectBound))
	defer cancel()

	return wait.Backoff(ctx, shortPause, objectPause, func(ctx context.Context) error {
		try := &attempt{o, o.api.Library(ctx)}

		return Final(try.Answered(request(ctx, try)))
	})
}

// Final marks all errors but those without an answer, for waits that end with the first answer that is an error.
func Final(err error) error {
	if errors.Is(err, api.ErrNoAnswer) {
		return err
	}

	return wait.Permanent(err)
}

func (a *attempt) get(ctx context.Context, ref Reference) (found *unstructured.Unstructured, err error) {
	err = a.on(ctx, ref, func(resources dynamic.ResourceInterface) (err error) {
		found, err = resources.Get(ctx, ref.Name, metav1.GetOptions{})

		return err
	})

	return found, err
}

func (a *attempt) apply(ctx context.Context, object map[string]any, dry bool) (map[string]any, error) {
	ref := ReferenceTo(object)

	options := metav1.ApplyOptions{FieldManager: objectManager, Force: true}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}

	var applied *unstructured.Unstructured

	err := a.on(ctx, ref, func(resources dynamic.ResourceInterface) (err error) {
		applied, err = resources.Apply(ctx, ref.Name, &unstructured.Unstructured{Object: desired(object)}, options)

		return err
	})
	if err != nil {
		return nil, err
	}

	return applied.Object, nil
}
