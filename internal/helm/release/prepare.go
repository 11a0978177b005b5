package release

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
)

// prepare creates what has to exist before Helm begins. All of it may be repeated.
func (r *run) prepare(ctx context.Context, a *attempt, have Observation) error {
	if err := r.namespace(ctx); err != nil {
		return err
	}

	if last, _ := have.Last(); a.step == InstallOver || last.Former != "" {
		// An object that is being deleted would be adopted, and then be gone.
		if err := r.cluster.awaitGone(ctx, r.spec.Name, last.Objects, r.spec.Options.Timeout, leaving); err != nil {
			return err
		}
	}

	if err := r.renewing(ctx, a, have); err != nil {
		return err
	}

	return r.define(ctx, a)
}

// namespace makes sure that there is one. It is made here, because Helm makes one only when it
// installs, and not when one that is on its way out has its name.
func (r *run) namespace(ctx context.Context) error {
	name := r.spec.Namespace

	bound := max(r.spec.Options.timeout(), definitionsBound)
	waiting, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("timed out after %s", bound))
	defer cancel()

	live, err := r.cluster.API.AwaitNamespace(waiting, name)

	switch {
	case apierrors.IsForbidden(err):
		// A user with rights in one namespace only has that namespace already.
		return nil
	case err != nil || live != nil:
		return err
	case !r.spec.Options.CreateNamespace:
		return fmt.Errorf("namespace %s does not exist; create it first, or set create_namespace = true", name)
	}

	if _, err := r.cluster.API.ApplyObject(ctx, map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}); err != nil {
		return err
	}

	r.recordCreated(diff.Object{APIVersion: "v1", Kind: "Namespace", Name: name})
	r.done("created namespace %s", name)

	return nil
}
