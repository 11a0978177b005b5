package workload

import (
	"context"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ensureNamespace makes the namespace if requested. It uses an existing one of another owner unchanged.
func (h *Client) ensureNamespace(ctx context.Context, s Spec) error {
	if !s.CreateNamespace {
		return nil
	}

	live, err := h.get(ctx, namespaceKind, "", s.Namespace)

	switch {
	case apierrors.IsForbidden(err):
		// Credentials with rights in a namespace may lack the right to read it, and then did not make it. Without
		// the namespace, nothing can be made in it.
		return nil
	case err != nil:
		return err
	case live == nil:
		namespace := s.namespace()
		namespace.Labels, namespace.Annotations = merged(s.Labels, namespace.Labels), merged(s.Annotations)

		body, err := fieldsOf(namespaceKind, namespace)
		if err != nil {
			return err
		}

		_, err = h.make(ctx, namespaceKind, "", body)

		return err
	case live.GetDeletionTimestamp() != nil:
		if err := h.awaitGone(ctx, namespaceKind, live); err != nil {
			return err
		}

		return h.ensureNamespace(ctx, s)
	case live.GetLabels()[LabelManagedBy] != managedBy:
		return nil
	}

	body, err := namespaceBody(live, s)
	if err != nil {
		return err
	}

	_, err = h.change(ctx, namespaceKind, live, body)

	return err
}

// namespaceBody keeps the original labels of a namespace: those of the user then may be those of another cluster.
func namespaceBody(live Object, s Spec) (fields, error) {
	owned, err := ownedFields(namespaceKind, live)
	if err != nil {
		return nil, err
	}

	wanted, err := fieldsOf(namespaceKind, s.namespace())
	if err != nil {
		return nil, err
	}

	body := owned.with(owned.part("metadata"), nil)
	labels := map[string]any{}

	for _, of := range []fields{owned, wanted} {
		maps.Copy(labels, fields(of.part("metadata")).part("labels"))
	}

	metadata := map[string]any{"name": s.Namespace, "labels": labels}
	if annotations := owned.part("metadata")["annotations"]; annotations != nil {
		metadata["annotations"] = annotations
	}

	body["metadata"] = metadata
	delete(body, "spec")

	return body, nil
}
