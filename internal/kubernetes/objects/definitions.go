package objects

import (
	"context"
	"errors"
	"fmt"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// DefinitionKind is the kind of definitions of custom kinds.
const DefinitionKind = "CustomResourceDefinition"

// AwaitEstablished waits until CustomResourceDefinitions, by their names, are established, and the API
// serves their kinds in all versions that it is to serve: it does so a moment later. What no server answers
// is asked again, and a definition that is not there is waited for, until ctx ends; the error then has its
// cause and says what is missing. Names that another definition has already are a permanent error. It only reads.
func (o *Objects) AwaitEstablished(ctx context.Context, names []string) error {
	left := names

	err := wait.Backoff(ctx, shortPause, objectPause, func(ctx context.Context) error {
		var (
			missing []string
			reasons []error
		)

		for i, name := range left {
			err := o.established(ctx, name)
			if err == nil {
				continue
			}

			if wait.IsPermanent(err) {
				return err
			}

			missing = append(missing, name)
			reasons = append(reasons, err)

			if errors.Is(err, api.ErrNoAnswer) {
				missing = append(missing, left[i+1:]...)

				break
			}
		}

		left = missing
		if len(left) == 0 {
			return nil
		}

		return errors.New(api.OneLine(errors.Join(reasons...)))
	})
	if err != nil {
		return fmt.Errorf("wait for CustomResourceDefinitions: %w", err)
	}

	return nil
}

// established is nil for a definition whose kinds are served.
func (o *Objects) established(ctx context.Context, name string) error {
	found, err := o.GetObject(ctx, Reference{APIVersion: "apiextensions.k8s.io/v1", Kind: DefinitionKind, Name: name})
	if err != nil {
		return Final(err)
	}

	if found == nil {
		return fmt.Errorf("%s not found", name)
	}

	is, err := status.Compute(&unstructured.Unstructured{Object: found})

	switch {
	case err != nil:
		return wait.Permanent(fmt.Errorf("cannot read %s: %w", name, err))
	case is.Status == status.FailedStatus:
		return wait.Permanent(fmt.Errorf("%s is not accepted: %s", name, is.Message))
	case is.Status != status.CurrentStatus:
		return fmt.Errorf("%s is not established: %s", name, is.Message)
	default:
		return o.served(ctx, name, found)
	}
}

// served is nil once the API serves the kind of a definition in all of its versions.
func (o *Objects) served(ctx context.Context, name string, definition map[string]any) error {
	group, _, _ := unstructured.NestedString(definition, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")

	for _, version := range versions {
		v, _ := version.(map[string]any)
		if v["served"] != true {
			continue
		}

		apiVersion := fmt.Sprintf("%s/%v", group, v["name"])

		serves, err := o.ServesKind(ctx, apiVersion, kind)
		if err != nil {
			return Final(err)
		}

		if !serves {
			return fmt.Errorf("%s: the API does not serve %s %s yet", name, apiVersion, kind)
		}
	}

	return nil
}
