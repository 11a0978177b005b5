package addon

import (
	"maps"
	"reflect"
	"slices"

	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/talosop/terraform-provider-talosop/internal/addon/manifest"
)

// wholeClient is all that Helm's actions ask a client for, some of it by type assertions.
type wholeClient interface {
	kube.Interface
	kube.InterfaceExt
	kube.InterfaceThreeWayMerge
	kube.InterfaceDeletionPropagation
	kube.InterfaceResources
}

// overlaid is a client that takes away from objects what failed revisions gave them.
//
// Helm takes away what an object had in the revision before, and has no more. By that it means the deployed
// one (Helm 3.21, action/upgrade.go, prepareUpgrade), and in an installation over what exists the new one itself
// (action/install.go, existingResourceConflict). So a field that only a failed revision had would stay
// for ever: the pod template of a first install that failed would keep what made it fail.
type overlaid struct {
	wholeClient

	failed map[manifest.Key][]map[string]any
}

// overlay prepares an attempt that follows revisions that failed.
func (a *attempt) overlay(have Observation) {
	failed := map[manifest.Key][]map[string]any{}

	for _, r := range slices.Backward(have.History) {
		if r.Status != Failed && r.Status != Unreadable {
			break
		}

		for _, o := range r.Objects {
			failed[o.Key()] = append(failed[o.Key()], o.Content)
		}
	}

	if client, whole := a.cfg.KubeClient.(wholeClient); whole && len(failed) > 0 {
		a.cfg.KubeClient = &overlaid{wholeClient: client, failed: failed}
	}
}

// Update implements kube.Interface.
func (c *overlaid) Update(original, target kube.ResourceList, force bool) (*kube.Result, error) {
	return c.wholeClient.Update(c.with(original), target, force)
}

// UpdateThreeWayMerge implements kube.InterfaceThreeWayMerge.
func (c *overlaid) UpdateThreeWayMerge(original, target kube.ResourceList, force bool) (*kube.Result, error) {
	return c.wholeClient.UpdateThreeWayMerge(c.with(original), target, force)
}

// with is a list in which objects have what failed revisions gave them. The list may be that of the
// objects that are to be, which stay as they are.
func (c *overlaid) with(original kube.ResourceList) kube.ResourceList {
	out := make(kube.ResourceList, 0, len(original))

	for _, info := range original {
		out = append(out, c.withOne(info))
	}

	return out
}

func (c *overlaid) withOne(info *resource.Info) *resource.Info {
	object, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return info
	}

	kind := object.GroupVersionKind()
	failed := c.failed[manifest.Key{Group: kind.Group, Kind: kind.Kind, Namespace: info.Namespace, Name: info.Name}]

	if len(failed) == 0 {
		return info
	}

	content := object.Object
	for _, former := range failed {
		content = union(content, former)
	}

	copied := *info
	copied.Object = &unstructured.Unstructured{Object: content}

	return &copied
}

// union has what either of two objects has; where both have something else, that of the first.
func union(a, b map[string]any) map[string]any {
	out := maps.Clone(a)

	for key, theirs := range b {
		ours, there := out[key]

		switch of := ours.(type) {
		case map[string]any:
			if other, ok := theirs.(map[string]any); ok {
				out[key] = union(of, other)
			}
		case []any:
			if other, ok := theirs.([]any); ok {
				out[key] = unionOfLists(of, other)
			}
		default:
			if !there {
				out[key] = theirs
			}
		}
	}

	return out
}

// elementKeys are the fields that tell the elements of lists apart, those that name them most
// closely first (Kubernetes 1.36, patchMergeKey in api/core/v1/types.go).
var elementKeys = []string{"mountPath", "devicePath", "containerPort", "port", "topologyKey", "ip", "name", "type", "uid"}

func unionOfLists(a, b []any) []any {
	out := slices.Clone(a)

	for _, theirs := range b {
		i := slices.IndexFunc(out, func(ours any) bool { return sameElement(ours, theirs) })
		if i < 0 {
			out = append(out, theirs)

			continue
		}

		ours, ok := out[i].(map[string]any)
		if other, both := theirs.(map[string]any); ok && both {
			out[i] = union(ours, other)
		}
	}

	return out
}

func sameElement(a, b any) bool {
	ours, ok := a.(map[string]any)
	theirs, both := b.(map[string]any)

	if ok && both {
		for _, key := range elementKeys {
			if ours[key] != nil && theirs[key] != nil {
				return reflect.DeepEqual(ours[key], theirs[key])
			}
		}
	}

	return reflect.DeepEqual(a, b)
}
