package addon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/talosop/terraform-provider-talosop/internal/addon/manifest"
)

// What Helm writes on objects of releases (Helm 3.21, action/validate.go).
const (
	managedBy        = "app.kubernetes.io/managed-by"
	managedByHelm    = "Helm"
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
)

// ownerOf is the release that an object says it belongs to.
func ownerOf(live map[string]any) (owner Name, owned bool) {
	if live == nil {
		return Name{}, false
	}

	annotations := (&unstructured.Unstructured{Object: live}).GetAnnotations()
	owner = Name{Namespace: annotations[releaseNamespace], Name: annotations[releaseName]}

	return owner, owner.Name != ""
}

// stranger says whose an object is when it is not the release's, as Helm sees it
// (Helm 3.21, action/validate.go, checkOwnership).
func stranger(live map[string]any, name Name) string {
	owner, owned := ownerOf(live)

	switch {
	case owned && owner != name:
		return "belongs to the release " + owner.String()
	case !owned || (&unstructured.Unstructured{Object: live}).GetLabels()[managedBy] != managedByHelm:
		return "belongs to no release"
	default:
		return ""
	}
}

// owned is the error about objects of others.
func owned(texts ...string) error {
	return fmt.Errorf("%w: %s. Rename them here, remove them there, or set take_ownership = true to make them this release's",
		ErrOwned, strings.Join(texts, "; "))
}

// looks asks for objects side by side, and hands each to see, one at a time; nil is one that is not
// there, and one whose kind the API does not know.
func (c *Cluster) looks(ctx context.Context, objects []manifest.Object, see func(o manifest.Object, live map[string]any)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)

	var mu sync.Mutex

	for _, o := range objects {
		group.Go(func() error {
			live, err := c.API.GetObject(ctx, referenceTo(o))
			if err != nil && !unknownKind(err) {
				return err
			}

			mu.Lock()
			defer mu.Unlock()

			see(o, live)

			return nil
		})
	}

	return group.Wait()
}

// unknownKind is an API that does not serve a kind.
func unknownKind(err error) bool {
	var kind *meta.NoKindMatchError

	return errors.As(err, &kind)
}

// conflicts are the objects that a step would change though they are not the release's. Helm looks at
// those that a manifest brings; it takes those that the revision before had for granted, which went
// over to another release when somebody took ownership of them.
func (c *Cluster) conflicts(ctx context.Context, name Name, brings, had []manifest.Object) error {
	known := map[manifest.Key]bool{}
	for _, o := range had {
		known[o.Key()] = true
	}

	var texts []string

	err := c.looks(ctx, slices.Concat(brings, had), func(o manifest.Object, live map[string]any) {
		text := stranger(live, name)
		if owner, has := ownerOf(live); known[o.Key()] && (!has || owner == name) {
			text = ""
		}

		if live != nil && text != "" {
			texts = append(texts, fmt.Sprintf("%s %s", o, text))
		}
	})
	if err != nil || len(texts) == 0 {
		return err
	}

	slices.Sort(texts)

	return owned(slices.Compact(texts)...)
}
