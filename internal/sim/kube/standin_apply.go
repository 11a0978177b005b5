package kube

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// typeConverter knows the schemas that server-side apply merges by; it is dear to make.
var typeConverter = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
})

// noDefaults leaves objects as they were sent: the stand-in has no defaults.
type noDefaults struct{}

// Default implements runtime.ObjectDefaulter.
func (noDefaults) Default(runtime.Object) {}

// serveApply is server-side apply with the code of the kube-apiserver. It removes fields that an applier set once
// and leaves out now. Changes without apply are recorded for no manager.
func (s *standIn) serveApply(w http.ResponseWriter, r *http.Request, t target, body []byte) {
	dryRun := r.URL.Query().Get("dryRun") != ""

	old, err := s.Store.Get(t.kind, t.namespace, t.name)
	found := err == nil

	if err != nil && !apierrors.IsNotFound(err) {
		writeError(w, t, err)

		return
	}

	next, err := applied(r, t, body, old)
	if err != nil {
		writeError(w, t, err)

		return
	}

	code := http.StatusOK

	switch {
	case dryRun:
		if !found {
			next.SetUID("dry-run")
		}
	case !found:
		code = http.StatusCreated
		next, err = s.Store.Create(t.kind, next)
	default:
		next, err = s.Store.Update(t.kind, t.namespace, t.name,
			func(*unstructured.Unstructured) (*unstructured.Unstructured, error) {
				return next, nil
			})
	}

	if err != nil {
		writeError(w, t, err)

		return
	}

	writeJSON(w, code, next.Object)
}

// applied merges an applied configuration into an object, which is nil when there is none.
func applied(
	r *http.Request, t target, body []byte, old *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	gvk := schema.GroupVersionKind{Group: t.kind.Group, Version: t.kind.Version, Kind: t.kind.Title}

	manager, err := managedfields.NewDefaultFieldManager(
		typeConverter(), scheme.Scheme, noDefaults{}, scheme.Scheme, gvk, gvk.GroupVersion(), t.subresource, nil)
	if err != nil {
		return nil, fmt.Errorf("make field manager: %w", err)
	}

	live, err := scheme.Scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", gvk.Kind, err)
	}

	if old != nil {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(old.Object, live); err != nil {
			return nil, fmt.Errorf("decode %s: %w", gvk.Kind, err)
		}
	}

	live.GetObjectKind().SetGroupVersionKind(gvk)

	patch := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(body, &patch.Object); err != nil {
		return nil, fmt.Errorf("decode patch: %w", err)
	}

	patch.SetName(t.name)

	if t.kind.Namespaced {
		patch.SetNamespace(t.namespace)
	}

	force, err := strconv.ParseBool(r.URL.Query().Get("force"))
	if err != nil {
		force = false // as without it
	}

	merged, err := manager.Apply(live, patch, r.URL.Query().Get("fieldManager"), force)
	if err != nil {
		return nil, err
	}

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(merged)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", gvk.Kind, err)
	}

	next := &unstructured.Unstructured{Object: content}
	next.SetGroupVersionKind(gvk)

	if old == nil {
		unstructured.RemoveNestedField(next.Object, "metadata", "creationTimestamp")
	}

	return next, nil
}
