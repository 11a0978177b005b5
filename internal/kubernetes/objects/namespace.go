package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// everyNamespace is what Kubernetes itself puts into each namespace (Kubernetes 1.36,
// pkg/controller/serviceaccount and pkg/controller/certificates/rootcacertpublisher).
var everyNamespace = []Reference{
	{APIVersion: "v1", Kind: "ServiceAccount", Name: "default"},
	{APIVersion: "v1", Kind: "ConfigMap", Name: "kube-root-ca.crt"},
}

// ContentsOf lists the objects in a namespace. It skips those that Kubernetes puts into each namespace, those that
// are deleted with their owner or being deleted already, and events. It retries what no server answers for a
// minute: objects of a new kind cannot be listed for a moment.
func (o *Objects) ContentsOf(ctx context.Context, namespace string) ([]Reference, error) {
	var contents []Reference

	err := o.insist(ctx, func(ctx context.Context, try *attempt) (err error) {
		contents, err = try.contentsOf(ctx, namespace)

		return err
	})

	return contents, err
}

func (a *attempt) contentsOf(ctx context.Context, namespace string) ([]Reference, error) {
	kinds, err := a.namespacedKinds()
	if err != nil {
		return nil, fmt.Errorf("list the kinds of objects: %w", api.WithoutURL(err))
	}

	client, err := metadata.NewForConfig(a.Config())
	if err != nil {
		return nil, fmt.Errorf("prepare the Kubernetes API: %w", err)
	}

	var contents []Reference

	for kind, resource := range kinds {
		list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})

		switch {
		case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("list every %s of %s: %w", kind.Kind, namespace, api.WithoutURL(err))
		}

		for i := range list.Items {
			o := &list.Items[i]
			ref := Reference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: o.Name}

			if o.DeletionTimestamp == nil && metav1.GetControllerOf(o) == nil && !slices.Contains(everyNamespace, ref) {
				ref.Namespace = namespace
				contents = append(contents, ref)
			}
		}
	}

	slices.SortFunc(contents, func(a, b Reference) int { return strings.Compare(a.String(), b.String()) })

	return contents, nil
}

// namespacedKinds are the kinds of which objects can be made and deleted in a namespace.
func (a *attempt) namespacedKinds() (map[schema.GroupVersionKind]schema.GroupVersionResource, error) {
	client, err := discovery.NewDiscoveryClientForConfig(a.Config())
	if err != nil {
		return nil, err
	}

	lists, err := client.ServerPreferredNamespacedResources()
	if err != nil {
		// Also when a single extension of the API does not answer: what it has is not known then.
		return nil, err
	}

	kinds := map[schema.GroupVersionKind]schema.GroupVersionResource{}

	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"create", "delete", "list"}},
		lists) {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}

		for _, r := range list.APIResources {
			if r.Kind != "Event" {
				kinds[group.WithKind(r.Kind)] = group.WithResource(r.Name)
			}
		}
	}

	return kinds, nil
}

// AwaitNamespace waits until a namespace that is being deleted is gone. It reports whether the namespace exists
// after that.
func (o *Objects) AwaitNamespace(ctx context.Context, name string) (object map[string]any, err error) {
	ref := Reference{APIVersion: "v1", Kind: "Namespace", Name: name}

	err = wait.Backoff(ctx, shortPause, objectPause, func(ctx context.Context) (err error) {
		if object, err = o.GetObject(ctx, ref); err != nil {
			return Final(err)
		}

		if object == nil {
			return nil
		}

		if metadata, ok := object["metadata"].(map[string]any); ok && metadata["deletionTimestamp"] != nil {
			return errors.New("the namespace is being deleted")
		}

		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait for namespace %s: %w", name, err)
	}

	return object, nil
}
