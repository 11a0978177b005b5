package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
)

// kinds remembers where the API serves kinds, so that an object does not cost a request for that. It trusts an
// entry until a path is not served. It asks for a missing entry each time, because a definition may have come
// meanwhile.
type kinds struct {
	mu sync.Mutex
	of map[schema.GroupVersion]*served
}

// served are the known kinds of one version of a group.
type served struct {
	// turn has room for one request. Concurrent callers with the same question wait for the answer that is
	// requested under try.
	turn chan struct{}
	by   map[string]kind
}

// kind is where the objects of a kind are.
type kind struct {
	plural     string
	namespaced bool
}

func (k *kinds) version(of schema.GroupVersion) *served {
	k.mu.Lock()
	defer k.mu.Unlock()

	if k.of == nil {
		k.of = map[schema.GroupVersion]*served{}
	}

	s := k.of[of]
	if s == nil {
		s = &served{turn: make(chan struct{}, 1)}
		k.of[of] = s
	}

	return s
}

func (k *kinds) forget(of schema.GroupVersion) {
	k.mu.Lock()
	defer k.mu.Unlock()

	delete(k.of, of)
}

// kindOf is where the API serves the kind of an object. The error is a *meta.NoKindMatchError
// when it does not.
func (a *attempt) kindOf(ctx context.Context, ref Reference) (schema.GroupVersionResource, bool, error) {
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return schema.GroupVersionResource{}, false, err
	}

	s := a.objects.kinds.version(version)

	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return schema.GroupVersionResource{}, false, api.Ended(ctx)
	}

	found, ok := s.by[ref.Kind]
	if !ok {
		if s.by, err = a.discover(version); err != nil {
			return schema.GroupVersionResource{}, false, err
		}

		found, ok = s.by[ref.Kind]
	}

	if !ok {
		return schema.GroupVersionResource{}, false, unknownKind(version, ref)
	}

	return version.WithResource(found.plural), found.namespaced, nil
}

func unknownKind(version schema.GroupVersion, ref Reference) error {
	return &meta.NoKindMatchError{GroupKind: version.WithKind(ref.Kind).GroupKind(),
		SearchedVersions: []string{version.Version}}
}

// discover asks which kinds there are, none when there is no such version of a group.
func (a *attempt) discover(version schema.GroupVersion) (map[string]kind, error) {
	client, err := discovery.NewDiscoveryClientForConfig(a.Config())
	if err != nil {
		return nil, fmt.Errorf("prepare the Kubernetes API: %w", err)
	}

	list, err := client.ServerResourcesForGroupVersion(version.String())

	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("list the kinds of %s: %w", version, err)
	}

	by := map[string]kind{}

	for i := range list.APIResources {
		// Subresources have their own kinds, or that of their parent.
		if r := &list.APIResources[i]; !strings.Contains(r.Name, "/") {
			by[r.Kind] = kind{plural: r.Name, namespaced: r.Namespaced}
		}
	}

	return by, nil
}

// on makes a request for an object where the API serves its kind. If the kind moved, because its definition was
// recreated, it asks once more.
func (a *attempt) on(ctx context.Context, ref Reference, request func(dynamic.ResourceInterface) error) error {
	err := a.once(ctx, ref, request)
	if !NotServed(err) {
		return err
	}

	version, parseErr := schema.ParseGroupVersion(ref.APIVersion)
	if parseErr != nil {
		return parseErr
	}

	a.objects.kinds.forget(version)

	if err = a.once(ctx, ref, request); NotServed(err) {
		return unknownKind(version, ref)
	}

	return err
}

func (a *attempt) once(ctx context.Context, ref Reference, request func(dynamic.ResourceInterface) error) error {
	resource, namespaced, err := a.kindOf(ctx, ref)
	if err != nil {
		return err
	}

	client, err := dynamic.NewForConfig(a.Config())
	if err != nil {
		return fmt.Errorf("prepare the Kubernetes API: %w", err)
	}

	// Charts give namespaces to objects that have none.
	if !namespaced || ref.Namespace == "" {
		return request(client.Resource(resource))
	}

	return request(client.Resource(resource).Namespace(ref.Namespace))
}

// ServesKind reports whether the API knows a kind, such as one that a CustomResourceDefinition
// brings.
func (o *Objects) ServesKind(ctx context.Context, apiVersion, kind string) (bool, error) {
	try := &attempt{o, o.api.Library(ctx)}

	_, _, err := try.kindOf(ctx, Reference{APIVersion: apiVersion, Kind: kind})

	var unknown *meta.NoKindMatchError

	switch {
	case errors.As(err, &unknown):
		return false, nil
	case err != nil:
		return false, try.Answered(err)
	}

	return true, nil
}

// NotServed reports whether the API serves nothing at a path, as opposed to a missing object of a kind that it
// knows.
func NotServed(err error) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &answer) {
		return false
	}

	details := answer.Status().Details

	return details == nil || details.Kind == ""
}
