package release

import (
	"bytes"
	"fmt"
	"slices"

	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
)

// merging makes objects match a manifest, whatever changed them in between.
//
// Helm compares the fields of custom resources in two manifests and not with the live object. So no upgrade ever
// undoes what another client changed. Helm can compare with the live object, but does so only where it takes
// objects over (Helm 3.21, kube/client.go, createPatch). Helm also takes the deployed manifest for the live state,
// so fields that only a failed revision had stay for ever.
type merging struct {
	changing

	// tried are the manifests of the revisions that failed since one succeeded, newest first.
	tried [][]byte
}

func newMerging(client kube.Interface, have Observation) (*merging, error) {
	able, err := changingOf(client)
	if err != nil {
		return nil, err
	}

	m := &merging{changing: able}

	for _, r := range failures(have.History) {
		text, err := manifestOf(r.Objects)
		if err != nil {
			return nil, err
		}

		m.tried = append(m.tried, text)
	}

	return m, nil
}

// failures are the revisions at the end of a history that failed, newest first.
func failures(history []Revision) []Revision {
	var found []Revision

	for _, r := range slices.Backward(history) {
		if r.Status != Failed && r.Status != Unreadable {
			break
		}

		found = append(found, r)
	}

	return found
}

func manifestOf(objects []diff.Object) ([]byte, error) {
	var all bytes.Buffer

	for _, o := range objects {
		text, err := yaml.Marshal(o.Content)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", o, err)
		}

		fmt.Fprintf(&all, "---\n%s", text)
	}

	return all.Bytes(), nil
}

// Update implements kube.Interface.
func (m *merging) Update(original, target kube.ResourceList, force bool) (*kube.Result, error) {
	return m.UpdateThreeWayMerge(original, target, force)
}

// UpdateThreeWayMerge implements kube.InterfaceThreeWayMerge.
func (m *merging) UpdateThreeWayMerge(original, target kube.ResourceList, force bool) (*kube.Result, error) {
	for _, text := range m.tried {
		tried, err := m.Build(bytes.NewReader(text), false)
		if err != nil {
			return &kube.Result{}, fmt.Errorf("read the manifest of a failed revision: %w", err)
		}

		there, err := present(target.Intersect(tried))
		if err != nil {
			return &kube.Result{}, err
		}

		if len(there) == 0 {
			continue
		}

		if _, err := m.changing.UpdateThreeWayMerge(tried.Intersect(there), there, force); err != nil {
			return &kube.Result{}, err
		}
	}

	return m.changing.UpdateThreeWayMerge(original, target, force)
}

// present are copies of those objects that the cluster has. Helm creates the others, and then would
// find what it does not expect (Helm 3.21, kube/client.go, update); and it replaces what is wanted by
// what there is once it is there (updateResource: Refresh).
func present(list kube.ResourceList) (kube.ResourceList, error) {
	var found kube.ResourceList

	for _, info := range list {
		live, err := liveOf(info)
		if err != nil {
			return nil, err
		}

		if live != nil {
			found = append(found, copyOf(info))
		}
	}

	return found, nil
}

// liveOf is what the cluster has of an object, nil for nothing.
func liveOf(info *resource.Info) (runtime.Object, error) {
	live, err := resource.NewHelper(info.Client, info.Mapping).Get(info.Namespace, info.Name)

	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // nothing is there, and that is no error
	case err != nil:
		return nil, fmt.Errorf("read %s %s/%s: %w", info.Mapping.GroupVersionKind.Kind, info.Namespace, info.Name, err)
	default:
		return live, nil
	}
}

func copyOf(info *resource.Info) *resource.Info {
	one := *info
	one.Object = info.Object.DeepCopyObject()

	return &one
}
