package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
)

// moves are kinds that went to another group, and whose objects went with them.
var moves = map[schema.GroupKind]string{
	{Group: "extensions", Kind: "DaemonSet"}:     "apps",
	{Group: "extensions", Kind: "Deployment"}:    "apps",
	{Group: "extensions", Kind: "ReplicaSet"}:    "apps",
	{Group: "extensions", Kind: "Ingress"}:       "networking.k8s.io",
	{Group: "extensions", Kind: "NetworkPolicy"}: "networking.k8s.io",
}

// Build implements kube.Interface.
//
// The manifest of a release may be older than the cluster: the API may no longer serve a version of a kind, or the
// definition of the kind was removed. Helm then neither upgrades nor uninstalls the release ("no matches for
// kind"). Helm builds the manifests of existing objects without validation (action.Upgrade, performUpgrade;
// action.Uninstall, deleteRelease; action.Configuration, deleteHookByPolicy). In these manifests, an object of a
// removed version is the same object in the version that is served now. An object of a removed kind is gone, since
// the API deletes objects with their definition. A rollback, and an action with validation turned off, also build
// the manifests that they write in this way. So such objects can be read and deleted only: a write returns the
// error that Helm returns at once.
func (c *client) Build(reader io.Reader, validate bool) (kube.ResourceList, error) {
	manifest, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}

	list, err := c.helm.Build(bytes.NewReader(manifest), validate)
	if err == nil || validate {
		return list, err
	}

	present, removed, partErr := c.splitRemoved(manifest)
	if partErr != nil || len(removed) == 0 {
		return list, err
	}

	if err := c.requireDiscovery(removed); err != nil {
		return nil, err
	}

	list, err = c.helm.Build(bytes.NewReader(present), validate)
	if err != nil {
		return list, err
	}

	for _, o := range removed {
		info, err := c.infoOfRemoved(o)
		if err != nil {
			return nil, err
		}

		list = append(list, info)
	}

	return list, nil
}

// splitRemoved removes the objects of removed kinds from a manifest.
func (c *client) splitRemoved(manifest []byte) (present []byte, removed []*unstructured.Unstructured, err error) {
	if err := expansion.CheckYAML(manifest); err != nil {
		return nil, nil, fmt.Errorf("read the manifest: %w", err)
	}

	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)

	sort := func(o *unstructured.Unstructured) error {
		gvk := o.GroupVersionKind()

		_, err := c.s.getter.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			removed = append(removed, o)

			return nil
		}

		if err != nil {
			return err
		}

		raw, err := json.Marshal(o)
		present = append(append(present, "\n---\n"...), raw...)

		return err
	}

	for {
		document := runtime.RawExtension{}

		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return present, removed, nil
		case err != nil:
			return nil, nil, err
		case len(bytes.TrimSpace(document.Raw)) == 0 || string(document.Raw) == "null":
			continue
		}

		if err := eachIn(document.Raw, sort); err != nil {
			return nil, nil, err
		}
	}
}

// eachIn does something with an object, or with those of a list.
func eachIn(document []byte, do func(*unstructured.Unstructured) error) error {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(document); err != nil {
		return err
	}

	if !o.IsList() {
		return do(o)
	}

	items, err := o.ToList()
	if err != nil {
		return err
	}

	for i := range items.Items {
		if err := do(&items.Items[i]); err != nil {
			return err
		}
	}

	return nil
}

// requireDiscovery is an error when the API cannot say at the moment which kinds there are in the groups
// of objects: the server of an aggregated API does not answer.
func (c *client) requireDiscovery(removed []*unstructured.Unstructured) error {
	_, _, err := c.s.getter.kinds.ServerGroupsAndResources()

	missing, is := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err == nil || !is {
		return err
	}

	for version, reason := range missing {
		if slices.ContainsFunc(removed,
			func(o *unstructured.Unstructured) bool { return o.GroupVersionKind().Group == version.Group }) {
			return fmt.Errorf("list the kinds of %s: %w", version, reason)
		}
	}

	return nil
}

// infoOfRemoved is an object of a kind that is not served as it is.
func (c *client) infoOfRemoved(o *unstructured.Unstructured) (*resource.Info, error) {
	was := o.GroupVersionKind()
	now := was.GroupKind()

	if group, moved := moves[now]; moved {
		now.Group = group
	}

	mapping, err := c.s.getter.mapper.RESTMapping(now)
	served := err == nil

	if err != nil && !meta.IsNoMatchError(err) {
		return nil, err
	}

	if !served {
		plural, _ := meta.UnsafeGuessKindToResource(was)
		mapping = &meta.RESTMapping{Resource: plural, GroupVersionKind: was, Scope: meta.RESTScopeRoot}
	}

	info := &resource.Info{Mapping: mapping, Namespace: o.GetNamespace(), Name: o.GetName(), Object: o}
	if served && mapping.Scope.Name() == meta.RESTScopeNameNamespace && info.Namespace == "" {
		info.Namespace = c.s.o.Namespace
	}

	if served {
		c.s.note(fmt.Sprintf("%s: the cluster no longer serves %s; it is the same object as %s", reference(info),
			was.GroupVersion(),
			mapping.GroupVersionKind.GroupVersion()))
		o.SetGroupVersionKind(mapping.GroupVersionKind)
	} else {
		c.s.note(fmt.Sprintf("%s: the cluster no longer has kind %s of %s, so the object is gone", reference(info),
			was.Kind, was.GroupVersion()))
	}

	info.Client, err = c.readOnlyClient(mapping.GroupVersionKind.GroupVersion(), &removedTransport{
		served: served, refusal: &meta.NoKindMatchError{GroupKind: was.GroupKind(), SearchedVersions: []string{was.Version}},
	})

	return info, err
}

// readOnlyClient is a client through the transport of removed objects.
func (c *client) readOnlyClient(version schema.GroupVersion, through *removedTransport) (resource.RESTClient, error) {
	config := rest.CopyConfig(c.s.config)
	through.RoundTripper, config.Transport = config.Transport, through
	config.ContentConfig = resource.UnstructuredPlusDefaultContentConfig()
	config.GroupVersion = &version
	config.APIPath = "/apis"

	if version.Group == "" {
		config.APIPath = "/api"
	}

	return rest.RESTClientFor(config)
}

// removedTransport is the transport for an object of a kind that is not served as it is: it cannot be written,
// and unless its kind is served in another version, there is none.
type removedTransport struct {
	http.RoundTripper

	served  bool
	refusal error
}

// RoundTrip implements http.RoundTripper.
func (t *removedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodDelete {
		return nil, t.refusal
	}

	if t.served {
		return t.RoundTripper.RoundTrip(r)
	}

	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
		Message: t.refusal.Error(),
	})
	if err != nil {
		return nil, err
	}

	return &http.Response{
		Status: "404 Not Found", StatusCode: http.StatusNotFound, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r,
	}, nil
}
