package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// inEveryNamespace are the objects that the host puts into each namespace, by resource. Without names, it is all
// of them: events, which are not needed, and objects that are only counted.
var inEveryNamespace = map[schema.GroupResource][]string{
	{Resource: "configmaps"}:                                {"kube-root-ca.crt", "openshift-service-ca.crt"},
	{Resource: "serviceaccounts"}:                           {"default", "builder", "deployer"},
	{Resource: "events"}:                                    nil,
	{Group: "events.k8s.io", Resource: "events"}:            nil,
	{Group: "metrics.k8s.io", Resource: "pods"}:             nil,
	{Resource: "endpoints"}:                                 nil, // of a Service, which counts
	{Group: "apps", Resource: "controllerrevisions"}:        nil, // of a StatefulSet or a DaemonSet, which count
	{Group: "discovery.k8s.io", Resource: "endpointslices"}: nil,
}

// removeNamespace deletes a namespace that talosop made when nothing else is in it. In doubt, the namespace stays.
func (h *Client) removeNamespace(ctx context.Context, s Spec) error {
	live, err := h.get(ctx, namespaceKind, "", s.Namespace)

	switch {
	case apierrors.IsForbidden(err):
		return nil // then it is not of talosop with these credentials, see ensureNamespace
	case err != nil:
		return err
	case live == nil, live.GetLabels()[LabelManagedBy] != managedBy:
		return nil
	case live.GetDeletionTimestamp() != nil:
		return h.awaitGone(ctx, namespaceKind, live)
	}

	other, err := h.somethingIn(ctx, s.Namespace)

	switch {
	case err != nil:
		return fmt.Errorf("check whether namespace %s on %s is empty: %w", s.Namespace, h, err)
	case other != "":
		h.progress(fmt.Sprintf("Namespace %s is kept: it contains %s", s.Namespace, other))

		return nil
	}

	if err := h.remove(ctx, namespaceKind, live); err != nil {
		return err
	}

	return h.awaitGone(ctx, namespaceKind, live)
}

// somethingIn names the first object in a namespace that the host did not make itself, empty when there is none.
// Objects that may not be listed might exist, and count.
func (h *Client) somethingIn(ctx context.Context, namespace string) (string, error) {
	lists, err := h.API().Discovery().ServerPreferredNamespacedResources()

	// The API of an aggregated server that is away cannot be listed.
	if discovery.IsGroupDiscoveryFailedError(err) {
		return "possibly objects of an unavailable API", nil
	}

	if err != nil {
		return "", err
	}

	client, err := metadata.NewForConfig(h.config)
	if err != nil {
		return "", err
	}

	var (
		group panics.Group
		mu    sync.Mutex
		other string
	)

	group.SetLimit(listsAtOnce)

	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return "", err
		}

		for i := range list.APIResources {
			r := version.WithResource(list.APIResources[i].Name)
			own, known := inEveryNamespace[r.GroupResource()]

			if known && own == nil || !slices.Contains(list.APIResources[i].Verbs, "list") {
				continue
			}

			group.Go(func() error {
				found, err := besides(ctx, client.Resource(r).Namespace(namespace), r.Resource, own)

				mu.Lock()
				defer mu.Unlock()

				other = cmp.Or(other, found)

				return err
			})
		}
	}

	err = group.Wait() // first: a return may read other before it calls functions

	return other, err
}

// listsAtOnce bounds the concurrent requests for one namespace.
const listsAtOnce = 8

// besides names one object of a kind in a namespace that is not one of the host's own. The limit of the request
// exceeds the number of the host's own.
func besides(ctx context.Context, objects metadata.ResourceInterface, resource string, own []string) (string, error) {
	found, err := objects.List(ctx, metav1.ListOptions{Limit: int64(len(own) + 1)})

	switch {
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return "", nil
	case apierrors.IsForbidden(err):
		return "possibly " + resource + " (no permission to list)", nil
	case err != nil:
		return "", fmt.Errorf("list the %s: %w", resource, err)
	}

	for i := range found.Items {
		if name := found.Items[i].Name; !slices.Contains(own, name) {
			return resource + " " + name, nil
		}
	}

	return "", nil
}
