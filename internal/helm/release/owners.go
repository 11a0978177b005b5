package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/talosop/terraform-provider-talosop/internal/helm/client"
	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// What Helm writes on objects of releases (Helm 3.21, action/validate.go).
const (
	managedBy     = "app.kubernetes.io/managed-by"
	managedByHelm = "Helm"
)

// ownerOf is the release that an object says it belongs to.
func ownerOf(live map[string]any) (owner Name, owned bool) {
	if live == nil {
		return Name{}, false
	}

	annotations := (&unstructured.Unstructured{Object: live}).GetAnnotations()
	owner = Name{Namespace: annotations[client.ReleaseNamespace], Name: annotations[client.ReleaseName]}

	return owner, owner.Name != ""
}

// foreignOwner says whose an object is when it is not the release's, as Helm sees it
// (Helm 3.21, action/validate.go, checkOwnership).
func foreignOwner(live map[string]any, name Name) string {
	owner, owned := ownerOf(live)

	switch {
	case owned && owner != name:
		return "belongs to release " + owner.String()
	case !owned || (&unstructured.Unstructured{Object: live}).GetLabels()[managedBy] != managedByHelm:
		return "belongs to no release"
	default:
		return ""
	}
}

// owned is the error about objects of others.
func owned(texts ...string) error {
	return fmt.Errorf("%w: %s. Rename them here, remove them there, or set take_ownership = true to transfer them to "+
		"this release",
		ErrOwned, strings.Join(texts, "; "))
}

// observeEach asks for objects side by side, and hands each to see, one at a time; nil is one that is not
// there, and one whose kind the API does not know.
func (c *Cluster) observeEach(
	ctx context.Context, objects []diff.Object, see func(o diff.Object, live map[string]any),
) error {
	group, ctx := panics.WithContext(ctx)
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

// conflicts are objects that a step brings, and that exist and are not the release's, as Helm sees
// it. The error names them.
func (c *Cluster) conflicts(ctx context.Context, name Name, brings []diff.Object) error {
	return c.others(ctx, brings, func(live map[string]any) string { return foreignOwner(live, name) })
}

// ownershipLost are objects that a release has had, and that another one took ownership of. Helm takes
// what the revision before had for granted (Helm 3.21, action/upgrade.go, performUpgrade).
func (c *Cluster) ownershipLost(ctx context.Context, name Name, has []diff.Object) error {
	return c.others(ctx, has, func(live map[string]any) string { return newOwner(live, name) })
}

// newOwner says which release an object belongs to now.
func newOwner(live map[string]any, name Name) string {
	if _, owned := ownerOf(live); !owned {
		return ""
	}

	return foreignOwner(live, name)
}

// existing are the existing objects. It skips those that no removal removes, and those that the installation of a
// release created since a time; the zero time skips none.
func (c *Cluster) existing(
	ctx context.Context, name Name, objects []diff.Object, since time.Time,
) (found []string, err error) {
	err = c.observeEach(ctx, objects, func(o diff.Object, live map[string]any) {
		if live == nil || o.Kept {
			return
		}

		made := (&unstructured.Unstructured{Object: live}).GetCreationTimestamp()
		if owner, _ := ownerOf(live); owner != name || since.IsZero() || made.Time.Before(since) {
			found = append(found, o.String())
		}
	})

	slices.Sort(found)

	return found, err
}

func (c *Cluster) others(ctx context.Context, objects []diff.Object, belongs func(live map[string]any) string) error {
	var texts []string

	err := c.observeEach(ctx, objects, func(o diff.Object, live map[string]any) {
		if live == nil {
			return
		}

		if text := belongs(live); text != "" {
			texts = append(texts, fmt.Sprintf("%s %s", o, text))
		}
	})
	if err != nil || len(texts) == 0 {
		return err
	}

	slices.Sort(texts)

	return owned(slices.Compact(texts)...)
}

// shared splits objects into those that a revision had already, and new ones.
func shared(objects []diff.Object, had []diff.Object) (both, added []diff.Object) {
	known := map[diff.Key]bool{}
	for _, o := range had {
		known[o.Key()] = true
	}

	for _, o := range objects {
		if known[o.Key()] {
			both = append(both, o)
		} else {
			added = append(added, o)
		}
	}

	return both, added
}
