package postrender

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
)

// head are the fields that select an object.
type head struct {
	group, version, kind, namespace, name string
	labels, annotations                   labels.Set
}

func headOf(object map[string]any) head {
	read := unstructured.Unstructured{Object: object}

	group, version, found := strings.Cut(read.GetAPIVersion(), "/")
	if !found {
		group, version = "", group
	}

	return head{
		group: group, version: version, kind: read.GetKind(), namespace: read.GetNamespace(), name: read.GetName(),
		labels: read.GetLabels(), annotations: read.GetAnnotations(),
	}
}

// in says in which namespace the object is, when it does not say it itself.
func (h head) in(namespace string) head {
	h.namespace = cmp.Or(h.namespace, namespace)

	return h
}

// is reports whether both are the same object.
func (h head) is(other head) bool {
	return h.group == other.group && h.version == other.version && h.kind == other.kind &&
		h.namespace == other.namespace && h.name == other.name
}

// String returns a text such as Deployment apps/web.
func (h head) String() string { return h.kind + " " + h.namespace + "/" + h.name }

// selector matches as the one of kustomize does, whose regular expressions it uses.
type selector struct {
	expressions         *types.SelectorRegex
	labels, annotations labels.Selector
}

func newSelector(target Target) (*selector, error) {
	// kustomize compiles all at once, and does not say which one is wrong
	for field, text := range map[string]string{
		"group": target.Group, "version": target.Version, "kind": target.Kind, "name": target.Name,
		"namespace": target.Namespace,
	} {
		if _, err := types.NewSelectorRegex(&types.Selector{ResId: resid.ResId{Name: text}}); err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
	}

	expressions, err := types.NewSelectorRegex(&types.Selector{ResId: resid.ResId{
		Gvk:  resid.Gvk{Group: target.Group, Version: target.Version, Kind: target.Kind},
		Name: target.Name, Namespace: target.Namespace,
	}})
	if err != nil {
		return nil, err
	}

	made := &selector{expressions: expressions}

	if made.labels, err = labels.Parse(target.LabelSelector); err != nil {
		return nil, fmt.Errorf("label_selector: %w", err)
	}

	if made.annotations, err = labels.Parse(target.AnnotationSelector); err != nil {
		return nil, fmt.Errorf("annotation_selector: %w", err)
	}

	return made, nil
}

func (s *selector) matches(object head) bool {
	return s.expressions.MatchGvk(resid.Gvk{Group: object.group, Version: object.version, Kind: object.kind}) &&
		s.expressions.MatchName(object.name) && s.expressions.MatchNamespace(object.namespace) &&
		s.labels.Matches(object.labels) && s.annotations.Matches(object.annotations)
}
