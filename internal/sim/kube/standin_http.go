package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/version"

	objectspkg "github.com/talosop/terraform-provider-talosop/internal/sim/objects"
)

var statusMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// The client is gone if this fails.
	_ = json.NewEncoder(w).Encode(body)
}

func writeStatus(w http.ResponseWriter, code int, reason, message string) {
	writeJSON(w, code, metav1.Status{
		TypeMeta: statusMeta, Status: metav1.StatusFailure, Code: int32(code), //nolint:gosec // an HTTP code
		Reason: metav1.StatusReason(reason), Message: message,
	})
}

// writeError answers with the status of an error of the API; any other error is a bad request.
func writeError(w http.ResponseWriter, t target, err error) {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		api = apierrors.NewBadRequest(fmt.Sprintf("%s %q %s", t.kind.GroupResource(), t.name, err))
	}

	status := api.Status()
	status.TypeMeta = statusMeta
	writeJSON(w, int(status.Code), status)
}

func (s *StandInServer) serveHealth(w http.ResponseWriter, path string) {
	if failed := s.unready(); path == "/readyz" && len(failed) > 0 {
		http.Error(w, "[-]"+strings.Join(failed, " failed: reason withheld\n[-]")+
			" failed: reason withheld\nreadyz check failed", http.StatusInternalServerError)

		return
	}

	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok")) // the peer is gone if this fails
}

func (s *StandInServer) serveVersion(w http.ResponseWriter) {
	parts := strings.SplitN(strings.TrimPrefix(s.version, "v"), ".", 3)
	for len(parts) < 2 {
		parts = append(parts, "0")
	}

	writeJSON(w, http.StatusOK, version.Info{
		Major: parts[0], Minor: parts[1], GitVersion: s.version, GitTreeState: "clean",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: "linux/" + runtime.GOARCH,
	})
}

// serveDiscovery answers /api, /apis and the resource lists below them.
func (s *standIn) serveDiscovery(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}

	switch path := strings.TrimSuffix(r.URL.Path, "/"); {
	case path == "/api":
		writeJSON(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"},
			Versions: []string{"v1"}})
	case path == "/apis":
		writeJSON(w, http.StatusOK, metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}, Groups: groups(),
		})
	case path == "/api/v1":
		writeJSON(w, http.StatusOK, resources("", "v1"))
	case strings.HasPrefix(path, "/apis/") && strings.Count(path, "/") == 3:
		parts := strings.Split(path, "/")
		list := resources(parts[2], parts[3])

		if len(list.APIResources) == 0 {
			return false
		}

		writeJSON(w, http.StatusOK, list)
	default:
		return false
	}

	return true
}

func groups() []metav1.APIGroup {
	var list []metav1.APIGroup

	for _, k := range objectspkg.Kinds {
		if k.Group == "" || slices.ContainsFunc(list, func(g metav1.APIGroup) bool { return g.Name == k.Group }) {
			continue
		}

		gv := metav1.GroupVersionForDiscovery{GroupVersion: k.APIVersion(), Version: k.Version}
		list = append(list, metav1.APIGroup{
			Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{gv}, PreferredVersion: gv,
		})
	}

	return list
}

func resources(group, version string) metav1.APIResourceList {
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: objectspkg.Kind{Group: group, Version: version}.APIVersion(),
	}

	for _, k := range objectspkg.Kinds {
		if k.Group != group || k.Version != version {
			continue
		}

		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: k.Resource, SingularName: strings.ToLower(k.Title), Kind: k.Title, Namespaced: k.Namespaced,
			Verbs: metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		})
	}

	return list
}

// wantsTable reports whether the client (kubectl get) asks for a table.
func wantsTable(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "as=Table") }

func writeObject(w http.ResponseWriter, r *http.Request, k objectspkg.Kind, obj *unstructured.Unstructured) {
	if wantsTable(r) {
		writeJSON(w, http.StatusOK, table(k, []*unstructured.Unstructured{obj}, obj.GetResourceVersion()))

		return
	}

	writeJSON(w, http.StatusOK, obj.Object)
}

func writeList(
	w http.ResponseWriter, r *http.Request, k objectspkg.Kind, items []*unstructured.Unstructured, version int,
) {
	if wantsTable(r) {
		writeJSON(w, http.StatusOK, table(k, items, strconv.Itoa(version)))

		return
	}

	objects := make([]any, 0, len(items))
	for _, item := range items {
		objects = append(objects, item.Object)
	}

	writeJSON(w, http.StatusOK, map[string]any{
		"apiVersion": k.APIVersion(), "kind": k.Title + "List",
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(version)}, "items": objects,
	})
}

// initialEventsEnd tells informers that the initial list is complete.
func initialEventsEnd(k objectspkg.Kind, version int) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetAPIVersion(k.APIVersion())
	obj.SetKind(k.Title)
	obj.SetResourceVersion(strconv.Itoa(version))
	obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})

	return obj
}

// serveWatch streams changes after the given version, or everything and what follows.
func (s *standIn) serveWatch(w http.ResponseWriter, r *http.Request, t target, sel objectspkg.Selector) {
	flusher, ok := w.(http.Flusher)
	if !ok {
		writeStatus(w, http.StatusInternalServerError, "InternalError", "streaming is not possible")

		return
	}

	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)

	encoder := json.NewEncoder(w)
	send := func(event string, obj *unstructured.Unstructured) bool {
		return encoder.Encode(map[string]any{"type": event, "object": obj.Object}) == nil
	}

	query := r.URL.Query()

	initial, err := strconv.ParseBool(query.Get("sendInitialEvents"))
	if err != nil {
		initial = false // as without it
	}

	version, err := strconv.Atoi(query.Get("resourceVersion"))
	if err != nil || version == 0 || initial {
		var items []*unstructured.Unstructured

		items, version = s.Store.List(t.kind, t.namespace, sel)
		for _, item := range items {
			if !send("ADDED", item) {
				return
			}
		}
	}

	if initial && !send("BOOKMARK", initialEventsEnd(t.kind, version)) {
		return
	}

	flusher.Flush()
	s.followChanges(r.Context(), t, sel, version, send, flusher)
}

// followChanges sends the changes after a version, until the client disconnects.
func (s *standIn) followChanges(
	ctx context.Context, t target, sel objectspkg.Selector, version int,
	send func(string, *unstructured.Unstructured) bool, flusher http.Flusher,
) {
	for {
		changes, changed := s.Store.Since(t.kind, version)

		for _, c := range changes {
			version = c.Version

			if (t.namespace != "" && c.Object.GetNamespace() != t.namespace) || !sel.Matches(c.Object) {
				continue
			}

			if !send(c.Event, c.Object) {
				return
			}
		}

		flusher.Flush()

		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}
