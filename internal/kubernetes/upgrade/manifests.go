package upgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	ssaerrors "github.com/fluxcd/pkg/ssa/errors"
	"github.com/go-logr/logr"
	"github.com/siderolabs/go-kubernetes/kubernetes/manifests"
	"github.com/siderolabs/go-kubernetes/kubernetes/ssa"
	"github.com/siderolabs/go-kubernetes/kubernetes/ssa/object"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/compatibility"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// syncBound is how long an API that does not answer is asked again to take manifests
// (go-kubernetes 0.2.41, ssa Manager.Apply).
const syncBound = 3 * time.Minute

// SyncManifests applies the bootstrap manifests of Talos, decoded JSON objects, to the cluster. It waits for
// [api.Options.Await] until its changes are reconciled. It also waits for the rollout of all Deployments and
// DaemonSets among them, as long as they make progress: at most [api.Options.Await] without any. Nodes that are
// not ready do not count for a DaemonSet, and without a ready node it waits for no workload. talosVersion is that
// of the oldest control plane.
//
// From Talos 1.13 on it does what talosctl upgrade-k8s does by default (Talos 1.13,
// cmd/talosctl/cmd/talos/upgrade-k8s.go). It uses server-side apply as the field manager of Talos, with the
// inventory of Talos, and adopts objects that are in no inventory. It does not recreate objects with different
// immutable fields. It deletes objects of the inventory that are not among the manifests; with keep they stay, in
// the inventory too. The wait ends early when an object other than a workload cannot be reconciled. For older
// versions it creates or updates objects, deletes nothing, and waits for workloads only.
//
// Every request goes to the API server that answers. When none does the error may be retried. So may the error
// about an unfinished rollout, since the next call waits for it again. Every other error is permanent: the API
// refuses an object, or an object other than a workload is not reconciled in time. The error names it. Idempotent:
// it neither writes nor waits for what matches. Destructive for what it prunes.
func (u *Upgrade) SyncManifests(
	ctx context.Context, objects []map[string]any, talosVersion string, keep bool,
) error {
	talos, err := compatibility.ParseTalosVersion(&machine.VersionInfo{Tag: talosVersion})
	if err != nil {
		return wait.Permanent(fmt.Errorf("sync manifests: read the Talos version: %w", err))
	}

	apply := u.applyManifests(keep)
	if !talos.SupportsSSAManifestSync() {
		apply = u.updateManifests
	}

	ctx, cancel := context.WithCancel(logr.NewContext(ctx, logr.Discard()))
	defer cancel()

	if err := u.syncManifests(ctx, objects, apply); err != nil {
		return fmt.Errorf("sync manifests: %w", err)
	}

	return nil
}

// applyFunc applies objects to the cluster. It returns the changed ones that have to be waited for, also with an
// error.
type applyFunc func(ctx context.Context, requests *api.Failover,
	objects []*unstructured.Unstructured) (object.ObjMetadataSet, error)

func (u *Upgrade) syncManifests(ctx context.Context, objects []map[string]any, apply applyFunc) error {
	changed := object.ObjMetadataSet{}

	bounded, cancel := context.WithTimeoutCause(ctx, syncBound+u.api.Options.Await,
		fmt.Errorf("timed out after %s", syncBound+u.api.Options.Await))
	defer cancel()

	err := u.api.Until(bounded, func(ctx context.Context) error {
		requests := u.api.Library(ctx)

		some, err := apply(ctx, requests, manifestsOf(objects))
		changed = changed.Union(some)

		if defines(objects, err) {
			// The API server serves a kind shortly after it accepts the definition, and a mapper that read
			// discovery before does not read it again (client-go 0.36, memCacheClient.Fresh).
			return plain(err)
		}

		return verdict(err, requests)
	})
	if err == nil && len(changed) > 0 {
		err = u.reconciled(ctx, changed)
	}

	if err != nil {
		return err
	}

	return u.rolledOut(ctx, workloadsOf(objects))
}

// verdict makes an error permanent unless it is without an answer.
func verdict(err error, requests *api.Failover) error {
	switch {
	case err == nil:
		return nil
	case requests.Ended():
		return plain(err)
	case requests.NoAnswer() != nil:
		return fmt.Errorf("%w; no response: %w", plain(err), requests.NoAnswer())
	default:
		return wait.Permanent(plain(err))
	}
}

// defines reports whether an error means that the API does not know a kind that the objects define themselves, or
// does not serve it yet.
func defines(given []map[string]any, err error) bool {
	var (
		unknown *meta.NoKindMatchError
		dryRun  *ssaerrors.DryRunErr
		of      *objectError
		kind    schema.GroupKind
	)

	switch unserved := objects.NotServed(err); {
	case errors.As(err, &unknown):
		kind = unknown.GroupKind
	case unserved && errors.As(err, &dryRun):
		kind = dryRun.InvolvedObject().GroupVersionKind().GroupKind()
	case unserved && errors.As(err, &of):
		kind = of.object.GroupVersionKind().GroupKind()
	default:
		return false
	}

	return slices.ContainsFunc(given, func(o map[string]any) bool {
		defined, _, _ := unstructured.NestedString(o, "spec", "names", "kind")
		group, _, _ := unstructured.NestedString(o, "spec", "group")

		return o["kind"] == objects.DefinitionKind && kind == schema.GroupKind{Group: group, Kind: defined}
	})
}

// objectError is why an object was not taken.
type objectError struct {
	object *unstructured.Unstructured
	err    error
}

func (e *objectError) Error() string {
	return ssa.FormatObjectPathWithGV(e.object) + ": " + e.err.Error()
}
func (e *objectError) Unwrap() error { return e.err }

// plain removes the heading that go-retry puts over a single error.
func plain(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), "1 error(s) occurred:\n\t", ""))
}

// manifestsOf copies objects, into which go-kubernetes writes.
func manifestsOf(objects []map[string]any) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, 0, len(objects))
	for _, o := range objects {
		out = append(out, (&unstructured.Unstructured{Object: o}).DeepCopy())
	}

	return out
}

func (u *Upgrade) manager(ctx context.Context, requests *api.Failover) (*ssa.Manager, error) {
	return ssa.NewManager(ctx, requests.Config(),
		constants.KubernetesFieldManagerName, constants.KubernetesInventoryNamespace,
		constants.KubernetesBootstrapManifestsInventoryName)
}

// applyManifests is Talos 1.13, pkg/cluster/kubernetes/talos_managed.go syncManifestsSSA.
func (u *Upgrade) applyManifests(keep bool) applyFunc {
	return func(
		ctx context.Context, requests *api.Failover, objects []*unstructured.Unstructured,
	) (object.ObjMetadataSet, error) {
		return u.apply(ctx, requests, objects, keep)
	}
}

func (u *Upgrade) apply(
	ctx context.Context, requests *api.Failover, objects []*unstructured.Unstructured, keep bool,
) (object.ObjMetadataSet, error) {
	manager, err := u.manager(ctx, requests)
	if err != nil {
		return nil, err
	}
	defer manager.Close()

	changes, err := manager.Apply(ctx, objects, ssa.ApplyOptions{
		InventoryPolicy: ssa.InventoryPolicyAdoptIfNoInventory,
		WaitTimeout:     u.api.Options.Await,
		NoPrune:         keep,
	})

	var changed object.ObjMetadataSet

	for _, change := range changes {
		switch change.Action {
		case ssa.CreatedAction, ssa.ConfiguredAction:
			if !isWorkload(change.ObjMetadata.GroupKind) {
				changed = append(changed, change.ObjMetadata)
			}
		case ssa.DeletedAction:
		default:
			continue
		}

		u.api.Options.Progress(fmt.Sprintf("manifest %s: %s", change.Subject, change.Action))
	}

	return changed, err
}

// updateManifests is what Talos does before 1.13 (Talos 1.13, talos_managed.go
// syncManifests), with a wait that can be interrupted.
func (u *Upgrade) updateManifests(
	ctx context.Context, requests *api.Failover, objects []*unstructured.Unstructured,
) (object.ObjMetadataSet, error) {
	results, done := make(chan manifests.SyncResult), make(chan error, 1)
	at := 0

	go func() {
		done <- panics.Do(func() error { return manifests.Sync(ctx, objects, requests.Config(), false, results) })
	}()

	for {
		select {
		case r := <-results:
			at++

			if !r.Skipped {
				u.api.Options.Progress(fmt.Sprintf("manifest %s: applied", r.Path))
			}
		case err := <-done:
			if err != nil && at < len(objects) {
				// Results come in order, so this is the one it was at.
				err = &objectError{objects[at], err}
			}

			return nil, err
		}
	}
}

// reconciled waits for objects as syncManifestsSSA does. It continues while the API is unreachable; an object that
// is not reconciled in time is a permanent error.
func (u *Upgrade) reconciled(ctx context.Context, objects object.ObjMetadataSet) error {
	end := time.Now().Add(u.api.Options.Await)

	return u.api.Until(ctx, func(ctx context.Context) error {
		requests := u.api.Library(ctx)

		manager, err := u.manager(ctx, requests)
		if err != nil {
			return wait.Permanent(err)
		}
		defer manager.Close()

		err = manager.Wait(ctx, objects,
			ssa.WaitOptions{Interval: u.api.Options.Poll, Timeout: time.Until(end), FailFast: true})

		switch {
		case err == nil:
			return nil
		case ctx.Err() == nil && (requests.NoAnswer() == nil || time.Now().After(end)):
			return wait.Permanent(plain(err))
		default:
			return plain(err)
		}
	})
}
