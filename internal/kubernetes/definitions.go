package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// AwaitEstablished waits until CustomResourceDefinitions, by their names, are served: their condition
// Established is true. What no server answers is asked again, and a definition that is not there is
// waited for, until ctx ends; the error then has its cause and says what is missing. Names that another
// definition has already are a permanent error. It only reads.
func (c *Client) AwaitEstablished(ctx context.Context, names []string) error {
	left := names

	err := wait.Until(ctx, objectPause, func(ctx context.Context) error {
		var missing, reasons []string

		for _, name := range left {
			err := c.established(ctx, name)
			if err == nil {
				continue
			}

			if wait.IsPermanent(err) {
				return err
			}

			missing = append(missing, name)
			reasons = append(reasons, oneLine(err))

			if errors.Is(err, ErrNoAnswer) {
				return err
			}
		}

		left = missing
		if len(left) == 0 {
			return nil
		}

		return errors.New(strings.Join(reasons, "; "))
	})
	if err != nil {
		return fmt.Errorf("wait for definitions: %w", err)
	}

	return nil
}

// established is nil for a definition that is served.
func (c *Client) established(ctx context.Context, name string) error {
	found, err := c.GetObject(ctx, Reference{APIVersion: "apiextensions.k8s.io/v1", Kind: definitionKind, Name: name})

	switch {
	case err != nil:
		return final(err)
	case found == nil:
		return fmt.Errorf("%s is not there", name)
	case (&unstructured.Unstructured{Object: found}).GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s is being deleted", name)
	}

	// Kubernetes 1.36, apiextensions/v1 NamesAccepted and Established.
	if accepted := conditionIn(found, "NamesAccepted"); accepted != nil && accepted.status == "False" {
		return wait.Permanent(fmt.Errorf("%s is not accepted%s", name, because(accepted.reason, accepted.message)))
	}

	switch is := conditionIn(found, "Established"); {
	case is == nil:
		return fmt.Errorf("%s is not established", name)
	case is.status != "True":
		return fmt.Errorf("%s is not established%s", name, because(is.reason, is.message))
	default:
		return nil
	}
}

const definitionKind = "CustomResourceDefinition"

// statusCondition is one of the conditions that most kinds have in their status.
type statusCondition struct{ status, reason, message string }

// conditionIn reads a condition of an object of any kind, nil when it has none of the type.
func conditionIn(object map[string]any, kind string) *statusCondition {
	conditions, _, err := unstructured.NestedSlice(object, "status", "conditions")
	if err != nil {
		return nil
	}

	for _, element := range conditions {
		if fields, ok := element.(map[string]any); ok && fields["type"] == kind {
			text := func(field string) string {
				value, _ := fields[field].(string)

				return value
			}

			return &statusCondition{text("status"), text("reason"), strings.TrimSpace(text("message"))}
		}
	}

	return nil
}
