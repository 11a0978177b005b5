package release

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
)

// createdObject is an object that an apply may have made, and that stays when its release goes.
type createdObject struct {
	diff.Object

	// made reports whether the apply made an object of this name.
	made func(live *unstructured.Unstructured) bool
}

// recordCreated records an object that was made now.
func (r *run) recordCreated(o diff.Object) {
	r.created = append(r.created, createdObject{o, func(*unstructured.Unstructured) bool { return true }})
}

// recordKept records what stays of a failed installation when it is uninstalled: objects that say so, and hooks,
// which are no part of a release (Helm 3.21, action/uninstall.go, deleteRelease). since is when it was begun.
func (r *run) recordKept(ctx context.Context, a *attempt, since time.Time) {
	objects, err := a.rendered.objects()
	if err != nil {
		return // a manifest that was installed can be read
	}

	for _, o := range objects {
		if o.Kept {
			r.created = append(r.created, createdObject{o, func(live *unstructured.Unstructured) bool {
				owner, _ := ownerOf(live.Object)

				return owner == r.spec.Name
			}})
		}
	}

	// Those of attempts before it.
	hooks, err := r.cluster.hooksLeft(ctx, r.spec.Name)
	if err != nil {
		r.outcome.Unseen = true
	}

	if a.release != nil {
		own, err := hooksOf(a.release.Hooks, r.spec.Namespace)
		if err != nil {
			return
		}

		for _, o := range own {
			hooks = append(hooks, hookLeft{Object: o, since: since})
		}
	}

	for _, h := range hooks {
		r.created = append(r.created, createdObject{h.Object, h.made})
	}
}

// listLeftovers names what an installation that failed has left, where there is no release any more.
func (r *run) listLeftovers(ctx context.Context) {
	last, exists := r.outcome.Now.Last()
	if exists && last.Status != Uninstalled {
		return
	}

	ctx, cancel := r.cluster.afterwards(ctx)
	defer cancel()

	var left []string

	for _, b := range r.created {
		live, err := r.cluster.API.GetObject(ctx, referenceTo(b.Object))

		switch {
		case unknownKind(err):
		case err != nil:
			left = append(left, fmt.Sprintf("possibly %s", b.Object))
		case live != nil && b.made(&unstructured.Unstructured{Object: live}):
			left = append(left, b.String())
		}
	}

	if exists {
		left = append(left, "the history of the release")
	}

	if err := r.cluster.dropLease(ctx, r.spec.Name); err != nil {
		left = append(left, fmt.Sprintf("Lease %s/%s", metav1.NamespaceSystem, leaseOf(r.spec.Name)))
	}

	for i := range left {
		left[i] = r.spec.Secrets.Redact(left[i])
	}

	slices.Sort(left)
	r.outcome.Left = slices.Compact(left)
}
