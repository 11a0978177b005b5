package kube

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/talosop/terraform-provider-talosop/internal/sim/objects"
)

// target is the object or list at a request path.
type target struct {
	kind        objects.Kind
	namespace   string
	name        string
	subresource string
}

// parsePath understands /api/v1/... and /apis/group/version/... paths.
func parsePath(path string) (target, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")

	var (
		t              target
		group, version string
	)

	switch {
	case len(parts) >= 3 && parts[0] == "api":
		version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		group, version, parts = parts[1], parts[2], parts[3:]
	default:
		return t, false
	}

	if parts[0] == "namespaces" && len(parts) >= 3 && parts[2] != "status" && parts[2] != "finalize" {
		t.namespace, parts = parts[1], parts[2:]
	}

	for _, k := range objects.Kinds {
		if k.Group == group && k.Version == version && k.Resource == parts[0] {
			t.kind = k

			if len(parts) > 1 {
				t.name = parts[1]
			}

			if len(parts) > 2 {
				t.subresource = parts[2]
			}

			return t, k.Namespaced || t.namespace == ""
		}
	}

	return t, false
}

func (s *standIn) serveResource(w http.ResponseWriter, r *http.Request) {
	t, ok := parsePath(r.URL.Path)
	if !ok {
		writeStatus(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")

		return
	}

	switch r.Method {
	case http.MethodGet:
		s.serveGet(w, r, t)
	case http.MethodPost:
		s.servePost(w, r, t)
	case http.MethodPut, http.MethodPatch:
		s.serveWrite(w, r, t)
	case http.MethodDelete:
		s.serveDelete(w, r, t)
	default:
		writeStatus(w, http.StatusMethodNotAllowed, "MethodNotAllowed",
			"the server does not allow this method on the requested resource")
	}
}

func (s *standIn) serveGet(w http.ResponseWriter, r *http.Request, t target) {
	if t.name != "" {
		obj, err := s.Store.Get(t.kind, t.namespace, t.name)
		if err != nil {
			writeError(w, t, err)

			return
		}

		writeObject(w, r, t.kind, obj)

		return
	}

	query := r.URL.Query()

	sel, err := objects.ParseSelector(query.Get("labelSelector"), query.Get("fieldSelector"))
	if err != nil {
		writeError(w, t, apierrors.NewBadRequest(err.Error()))

		return
	}

	if watch, _ := strconv.ParseBool(query.Get("watch")); watch {
		s.serveWatch(w, r, t, sel)

		return
	}

	items, version := s.Store.List(t.kind, t.namespace, sel)
	writeList(w, r, t.kind, items, version)
}

func (s *standIn) servePost(w http.ResponseWriter, r *http.Request, t target) {
	if t.kind.Resource == "pods" && t.subresource == "eviction" {
		s.serveEviction(w, r, t)

		return
	}

	obj, err := readObject(r)
	if err != nil {
		writeError(w, t, apierrors.NewBadRequest(err.Error()))

		return
	}

	if t.kind.Namespaced {
		obj.SetNamespace(t.namespace)
	}

	if t.kind.Resource == "poddisruptionbudgets" {
		delete(obj.Object, "status") // it is the disruption controller's
	}

	t.name = obj.GetName()

	created, err := s.Store.Create(t.kind, obj)
	if err != nil {
		writeError(w, t, err)

		return
	}

	writeJSON(w, http.StatusCreated, created.Object)
}

// serveWrite is an update or a patch, of the object or of its status.
func (s *standIn) serveWrite(w http.ResponseWriter, r *http.Request, t target) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		writeError(w, t, apierrors.NewBadRequest(err.Error()))

		return
	}

	contentType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	status := t.subresource == "status"

	if types.PatchType(contentType) == types.ApplyPatchType {
		s.serveApply(w, r, t, body)

		return
	}

	updated, err := s.Store.Update(t.kind, t.namespace, t.name,
		func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			next, err := mergeBody(r.Method, contentType, body, old, t.kind)
			if err != nil {
				return nil, err
			}

			return confine(old, next, t.kind, status), nil
		})

	if err != nil {
		writeError(w, t, err)

		return
	}

	writeObject(w, r, t.kind, updated)
}

// confine excludes status from writes to the object and everything else from writes to the status.
func confine(old, next *unstructured.Unstructured, k objects.Kind, status bool) *unstructured.Unstructured {
	if !slices.Contains([]string{"nodes", "pods", "poddisruptionbudgets", "daemonsets", "deployments"}, k.Resource) {
		return next
	}

	if !status {
		if before, found := old.Object["status"]; found {
			next.Object["status"] = before
		} else {
			delete(next.Object, "status")
		}

		return next
	}

	version := next.GetResourceVersion()
	old.Object["status"] = next.Object["status"]
	old.SetResourceVersion(version)

	return old
}

// mergeBody applies a PUT body or a patch of one of the kinds that merge into the object.
func mergeBody(
	method, contentType string, body []byte, old *unstructured.Unstructured, k objects.Kind,
) (*unstructured.Unstructured, error) {
	if method == http.MethodPut {
		return decodeObject(body)
	}

	before, err := old.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode object: %w", err)
	}

	var after []byte

	switch types.PatchType(contentType) {
	case types.JSONPatchType:
		patch, err := jsonpatch.DecodePatch(body)
		if err != nil {
			return nil, fmt.Errorf("decode patch: %w", err)
		}

		if after, err = patch.Apply(before); err != nil {
			return nil, fmt.Errorf("apply patch: %w", err)
		}
	case types.StrategicMergePatchType:
		after, err = strategicMerge(before, body, k)
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, body)
	default:
		return nil, fmt.Errorf("patch type %q is not supported", contentType)
	}

	if err != nil {
		return nil, fmt.Errorf("apply patch: %w", err)
	}

	next := &unstructured.Unstructured{}

	return next, decodeJSON(after, next)
}

// strategicMerge knows the merge keys of nodes and pods; other kinds merge as JSON does.
func strategicMerge(before, patch []byte, k objects.Kind) ([]byte, error) {
	switch k.Resource {
	case "nodes":
		return strategicpatch.StrategicMergePatch(before, patch, corev1.Node{})
	case "pods":
		return strategicpatch.StrategicMergePatch(before, patch, corev1.Pod{})
	default:
		return jsonpatch.MergePatch(before, patch)
	}
}

func (s *standIn) serveDelete(w http.ResponseWriter, r *http.Request, t target) {
	if t.name == "" {
		items, _ := s.Store.List(t.kind, t.namespace, objects.Selector{})
		for _, obj := range items {
			// If another client deleted it in between, that is fine.
			_ = s.Store.Remove(t.kind, obj.GetNamespace(), obj.GetName())
		}

		writeJSON(w, http.StatusOK, metav1.Status{TypeMeta: statusMeta, Status: metav1.StatusSuccess})

		return
	}

	if err := s.remove(r, t); err != nil {
		writeError(w, t, err)

		return
	}

	writeJSON(w, http.StatusOK, metav1.Status{TypeMeta: statusMeta, Status: metav1.StatusSuccess})
}

func (s *standIn) remove(r *http.Request, t target) error {
	if t.kind.Resource == "nodes" {
		defer s.collectPods(t.name)
	}

	if t.kind.Resource != "pods" {
		return s.Store.Remove(t.kind, t.namespace, t.name)
	}

	options := metav1.DeleteOptions{}
	if err := readInto(r, &options); err != nil {
		return err
	}

	return s.deletePod(t, options)
}

// readInto decodes a body, if there is one, in any encoding clients use.
func readInto(r *http.Request, into runtime.Object) error {
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) == 0 {
		return err
	}

	obj, err := decodeObject(body)
	if err != nil {
		return err
	}

	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, into); err != nil {
		return fmt.Errorf("decode %T: %w", into, err)
	}

	return nil
}

func readObject(r *http.Request) (*unstructured.Unstructured, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}

	return decodeObject(body)
}

// decodeObject reads an object in any encoding clients use. Typed clients of
// Kubernetes 1.36 send protobuf; kinds the scheme does not know are JSON.
func decodeObject(body []byte) (*unstructured.Unstructured, error) {
	next := &unstructured.Unstructured{}

	typed, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return next, decodeJSON(body, next)
	}

	if next.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed); err != nil {
		return nil, fmt.Errorf("decode object: %w", err)
	}

	return next, nil
}

func decodeJSON(body []byte, obj *unstructured.Unstructured) error {
	if err := json.Unmarshal(body, &obj.Object); err != nil {
		return fmt.Errorf("decode object: %w", err)
	}

	return nil
}
