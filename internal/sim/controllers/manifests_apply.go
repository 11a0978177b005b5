package controllers

import (
	"context"
	"errors"
	"fmt"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/go-kubernetes/kubernetes/ssa"
	"github.com/siderolabs/go-kubernetes/kubernetes/ssa/object"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// ApplyManifests creates the objects of the bootstrap manifests that are missing whenever
// the manifests change, and never updates any (Talos 1.13, k8s/manifest_apply.go).
func (c *Controllers) ApplyManifests(ctx context.Context) {
	for {
		changed := c.manifests.Next()

		if err := c.createManifests(ctx); err != nil {
			if timing.Pause(ctx, kube.KubeletRetry) != nil {
				return
			}

			continue
		}

		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// createManifests is one attempt of applyManifests.
func (c *Controllers) createManifests(ctx context.Context) error {
	k, err := c.host.Kubernetes(ctx)
	if err != nil {
		return err
	}

	list, err := safe.StateListAll[*k8s.Manifest](ctx, c.Resources)
	if err != nil {
		return fmt.Errorf("list manifests: %w", err)
	}

	var (
		objects []*unstructured.Unstructured
		names   []string
	)

	for manifest := range list.All() {
		names = append(names, manifest.Metadata().ID())

		for _, item := range manifest.TypedSpec().Items {
			objects = append(objects, (&unstructured.Unstructured{Object: item.Object}).DeepCopy())
		}
	}

	if err := c.createObjects(ctx, k, objects); err != nil {
		if ctx.Err() == nil {
			c.World.Logf("%s: apply manifests: %v", c.Name(), err)
		}

		return err
	}

	machined.Modify(c.Boot, k8s.NewManifestStatus(k8s.ControlPlaneNamespaceName),
		func(r *k8s.ManifestStatus) { r.TypedSpec().ManifestsApplied = names })

	return nil
}

// createObjects creates what neither exists nor is in the inventory, and records it
// there. Machines of one etcd take turns.
func (c *Controllers) createObjects(ctx context.Context, k *kube.Client, objects []*unstructured.Unstructured) error {
	turn := c.host.Applying()

	turn.Lock()
	defer turn.Unlock()

	clients, err := kubernetes.NewForConfig(k.Access)
	if err != nil {
		return fmt.Errorf("make Kubernetes client: %w", err)
	}

	inventory, err := ssa.GetInventory(ctx, clients, constants.KubernetesInventoryNamespace,
		constants.KubernetesBootstrapManifestsInventoryName)
	if err != nil {
		return fmt.Errorf("get inventory: %w", err)
	}

	client, err := dynamic.NewForConfig(k.Access)
	if err != nil {
		return fmt.Errorf("make dynamic client: %w", err)
	}

	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(k.Typed.Discovery()))
	known := inventory.Get()

	var errs []error

	for _, obj := range objects {
		id, err := object.RuntimeToObjMeta(obj)
		if err != nil {
			errs = append(errs, fmt.Errorf("identify %s: %w", obj.GetName(), err))

			continue
		}

		if known.Contains(id) {
			continue
		}

		if err := createMissing(ctx, client, mapper, obj); err != nil {
			errs = append(errs, err)

			continue
		}

		known = append(known, id)
	}

	inventory.Update(known)

	return errors.Join(append(errs, inventory.Write(ctx))...)
}

// createMissing creates an object unless it exists. One of a kind that the API does not
// know is left out.
func createMissing(
	ctx context.Context, client dynamic.Interface, mapper meta.RESTMapper, obj *unstructured.Unstructured,
) error {
	gvk := obj.GroupVersionKind()

	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return nil
	}

	if err != nil {
		return fmt.Errorf("map %s: %w", gvk, err)
	}

	var objects dynamic.ResourceInterface = client.Resource(mapping.Resource)

	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if obj.GetNamespace() == "" {
			obj.SetNamespace(metav1.NamespaceDefault)
		}

		objects = client.Resource(mapping.Resource).Namespace(obj.GetNamespace())
	}

	_, err = objects.Get(ctx, obj.GetName(), metav1.GetOptions{})
	if err == nil || !apierrors.IsNotFound(err) {
		return err
	}

	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}

	annotations[ssa.InventoryAnnotationKey] = constants.KubernetesBootstrapManifestsInventoryName
	obj.SetAnnotations(annotations)

	_, err = objects.Apply(ctx, obj.GetName(), obj,
		metav1.ApplyOptions{FieldManager: constants.KubernetesFieldManagerName})
	if err != nil {
		return fmt.Errorf("create %s %s: %w", gvk.Kind, obj.GetName(), err)
	}

	return nil
}
