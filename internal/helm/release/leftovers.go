package release

import (
	"context"
	"fmt"
	"slices"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
)

// leftovers are the objects that failed revisions may have brought, and that neither the deployed
// revision nor the newest one has. Helm forgets them: an upgrade removes what the deployed revision
// had, an installation removes nothing.
//
// The failed revisions are those since one succeeded. Definitions and objects that say so are kept.
func leftovers(have Observation) []diff.Object {
	last, exists := have.Last()
	if !exists || last.Status != Deployed && last.Status != Failed {
		return nil
	}

	staying := map[diff.Key]bool{}

	deployed, _ := have.Deployed()
	for _, o := range slices.Concat(last.Objects, deployed.Objects) {
		staying[o.Key()] = true
	}

	var left []diff.Object

	for _, r := range failures(have.History[:len(have.History)-1]) {
		for _, o := range r.Objects {
			if !staying[o.Key()] && !o.Kept && o.Kind != definitionKind {
				staying[o.Key()] = true
				left = append(left, o)
			}
		}
	}

	return left
}

// tried is since when an installation is tried that has not come to be, the zero time for none.
func tried(have Observation) (since time.Time) {
	for _, r := range failures(have.History) {
		if !r.Deleted.IsZero() {
			break
		}

		since = r.Made
	}

	return since
}

// sweep removes leftovers. What went over to another release, or never came, is none.
func (r *run) sweep(ctx context.Context, have Observation) error {
	removed, err := r.cluster.removeOwn(ctx, r.spec.Name, leftovers(have))
	for _, o := range removed {
		r.done("removed %s, a leftover of a failed revision", o)
	}

	return err
}

// removeOwn deletes those objects that say that they are the release's, and waits for none of them.
func (c *Cluster) removeOwn(ctx context.Context, name Name, objects []diff.Object) (removed []diff.Object, err error) {
	uids := map[diff.Key]string{}

	err = c.observeEach(ctx, objects, func(o diff.Object, live map[string]any) {
		object := &unstructured.Unstructured{Object: live}
		kept := live != nil && object.GetAnnotations()[kube.ResourcePolicyAnno] == kube.KeepPolicy

		if owner, _ := ownerOf(live); owner == name && !kept && object.GetDeletionTimestamp() == nil {
			uids[o.Key()] = string(object.GetUID())
		}
	})
	if err != nil {
		return nil, err
	}

	for _, o := range objects {
		uid, ours := uids[o.Key()]
		if !ours {
			continue
		}

		if err := c.API.RequestDeletion(ctx, referenceTo(o), uid); err != nil {
			return removed, fmt.Errorf("remove leftovers of a failed revision: %w", err)
		}

		removed = append(removed, o)
	}

	return removed, nil
}

// guard prevents an upgrade from changing objects that another release took over meanwhile, and records the
// existing objects before an installation.
func (r *run) guard(ctx context.Context, a *attempt, have Observation) {
	if a.step != Upgrade {
		a.rendered.check = func(objects []diff.Object) (err error) {
			a.before, err = r.cluster.existing(ctx, r.spec.Name, objects, tried(have))

			return err
		}

		return
	}

	from, exists := have.revision(a.from)
	if !exists || r.spec.Options.TakeOwnership {
		return
	}

	a.rendered.check = func(objects []diff.Object) error {
		both, _ := shared(objects, from.Objects)

		return r.cluster.ownershipLost(ctx, r.spec.Name, both)
	}
}
