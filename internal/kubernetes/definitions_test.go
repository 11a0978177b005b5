package kubernetes_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// A definition is waited for until it is served, and not when its names are another's.
func testDefinitions(t *testing.T, l *living, c *kubernetes.Client) {
	t.Helper()

	h := l.helm(t)
	h.create(t, l, parsed(t, definition("firsts", "First", "{type: object}")))
	check(t, c.AwaitEstablished(within(t, time.Minute), []string{"firsts.example.org"}))

	// Of a plural that no grammar gives.
	h.create(t, l, parsed(t, definition("gatewayz", "Gateway", "{type: object}")))
	check(t, c.AwaitEstablished(within(t, time.Minute), []string{"firsts.example.org", "gatewayz.example.org"}))

	gateway := object{"apiVersion": "example.org/v1", "kind": "Gateway",
		"metadata": object{"name": "g", "namespace": l.namespace(t, "definitions")}}
	awaitTrue(t, func() bool {
		_, err := c.ApplyObject(t.Context(), gateway)

		return err == nil
	})

	if found, err := c.GetObject(t.Context(), objects.ReferenceTo(gateway)); err != nil || found == nil {
		t.Errorf("the gateway is %v, %v", found, err)
	}

	// Others' names.
	h.create(t, l, parsed(t, definition("seconds", "First", "{type: object}")))

	err := c.AwaitEstablished(within(t, time.Minute), []string{"firsts.example.org", "seconds.example.org"})
	if !wait.IsPermanent(err) || !strings.Contains(err.Error(), `seconds.example.org is not accepted`) ||
		!strings.Contains(err.Error(), "is already in use") {
		t.Errorf("a definition of others' names gives %v", err)
	}

	reason := errors.New("it takes too long")
	short, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, reason)
	defer cancel()

	if err := c.AwaitEstablished(short, []string{"none.example.org"}); !errors.Is(err, reason) ||
		!strings.Contains(err.Error(), "none.example.org not found") {
		t.Errorf("a definition that is not there gives %v", err)
	}
}

// A kind that is not served is a separate error. A kind with a new definition is found in its new place.
func testAnyKind(t *testing.T, l *living, c *kubernetes.Client) {
	t.Helper()

	var unknown *meta.NoKindMatchError

	ref := objects.Reference{APIVersion: "example.org/v1", Kind: "Moved", Namespace: l.namespace(t, "moved"), Name: "m"}
	moved := object{"apiVersion": ref.APIVersion, "kind": ref.Kind,
		"metadata": object{"name": ref.Name, "namespace": ref.Namespace}}

	for text, err := range map[string]error{
		"reading": second(c.GetObject(t.Context(), ref)), "applying": second(c.ApplyObject(t.Context(), moved)),
		"deleting": c.DeleteObject(t.Context(), ref, ""), "creating": second(c.CreateObject(t.Context(), moved)),
		"comparing":    third(c.CompareObject(t.Context(), moved)),
		"another kind": second(c.GetObject(t.Context(), objects.Reference{APIVersion: "v1", Kind: "Moved", Name: "m"})),
		"a subresource": second(c.GetObject(t.Context(),
			objects.Reference{APIVersion: "v1", Kind: "Eviction", Namespace: "default", Name: "m"})),
		"an old version": second(c.GetObject(t.Context(),
			objects.Reference{APIVersion: "policy/v1beta1", Kind: "PodDisruptionBudget", Name: "m"})),
	} {
		if !errors.As(err, &unknown) || errors.Is(err, api.ErrNoAnswer) {
			t.Errorf("%s what is not served gives %v", text, err)
		}
	}

	h := l.helm(t)
	crd := parsed(t, definition("moveds", "Moved", "{type: object}"))
	h.create(t, l, crd)
	check(t, c.AwaitEstablished(within(t, time.Minute), []string{"moveds.example.org"}))
	awaitTrue(t, func() bool { return second(c.ApplyObject(t.Context(), moved)) == nil })
	check(t, c.DeleteObject(within(t, time.Minute), objects.ReferenceTo(crd), ""))

	awaitTrue(t, func() bool { return errors.As(second(c.GetObject(t.Context(), ref)), &unknown) })

	// Now without namespaces.
	crd = parsed(t, strings.Replace(definition("moves", "Moved", "{type: object}"), "Namespaced", "Cluster", 1))
	h.create(t, l, crd)
	awaitTrue(t, func() bool { return second(c.ApplyObject(t.Context(), moved)) == nil })

	found, err := c.GetObject(t.Context(), ref)
	check(t, err)

	if metadata, _ := found["metadata"].(object); metadata["namespace"] != nil {
		t.Errorf("the object is in namespace %v", metadata["namespace"])
	}

	expectDifferences(t, c, moved)
	check(t, c.DeleteObject(within(t, time.Minute), ref, ""))

	if list, err := h.resource(t, l, object{"apiVersion": "example.org/v1", "kind": "Moved"}).List(t.Context(),
		metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("after the deletion there are %v, %v", list, err)
	}
}

func second[T any](_ T, err error) error { return err }

func third[T, U any](_ T, _ U, err error) error { return err }
