package postrender

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/filters/patchstrategicmerge"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Renderer is a post-renderer for Helm's actions.
//
// Kustomize merges object by object and does not get the manifest as a whole. A full kustomize build refuses what
// charts may contain, such as two objects of one name and objects with generateName. It also reads numbers and
// booleans differently than the API server, and rewrites objects without a patch.
type Renderer struct {
	patches   []Patch
	namespace string
}

// New makes a post-renderer of patches, which are applied in their order.
func New(patches []Patch) *Renderer { return &Renderer{patches: patches, namespace: "default"} }

// In sets the namespace of objects that name none: that of the release. It is "default" otherwise, as in
// kustomize.
func (r *Renderer) In(namespace string) *Renderer {
	return &Renderer{patches: r.patches, namespace: namespace}
}

// Run implements postrender.PostRenderer: it patches what a chart rendered. Documents of which no object is
// patched stay as they are, byte for byte, and all stay in their order. A patch that matches nothing is an
// error, as is one that cannot be applied: an [*Error].
func (r *Renderer) Run(rendered *bytes.Buffer) (*bytes.Buffer, error) {
	patches, err := compile(r.patches)
	if err != nil || len(patches) == 0 {
		return rendered, err
	}

	documents, err := readDocuments(rendered.String())
	if err != nil {
		return nil, err
	}

	for i, patch := range patches {
		if err := patch.apply(documents, r.namespace); err != nil {
			return nil, &Error{Index: i, Err: err}
		}
	}

	var patched bytes.Buffer

	for _, document := range documents {
		if err := document.writeTo(&patched); err != nil {
			return nil, err
		}
	}

	return &patched, nil
}

// apply patches all objects that match.
func (c compiled) apply(documents []*document, namespace string) error {
	for _, edit := range c.edits(namespace) {
		if err := edit.apply(documents, namespace); err != nil {
			return err
		}
	}

	return nil
}

// edit is one change of the objects that match.
type edit struct {
	// what is the readable target of the patch, and kind is its kind, if known.
	what, kind string
	matches    func(head) bool
	// change returns the changed object, nil to delete it.
	change func(object map[string]any) (map[string]any, error)
}

func (c compiled) edits(namespace string) []edit {
	if c.operations != nil {
		return []edit{{what: "the target", matches: c.target.matches, change: c.operate}}
	}

	edits := make([]edit, len(c.merges))

	for i, patch := range c.merges {
		change := func(object map[string]any) (map[string]any, error) { return merge(object, patch) }

		if c.target != nil {
			edits[i] = edit{what: "the target", matches: c.target.matches, change: change}

			continue
		}

		wanted := headOf(patch).in(namespace)
		edits[i] = edit{what: wanted.String(), kind: wanted.kind, matches: wanted.is, change: change}
	}

	return edits
}

func (e edit) apply(documents []*document, namespace string) error {
	found := false

	for _, document := range documents {
		for i, object := range document.objects {
			head := headOf(object).in(namespace)
			if object == nil || !e.matches(head) {
				continue
			}

			changed, err := e.change(object)
			if err != nil {
				return fmt.Errorf("%s: %w", head, err)
			}

			document.objects[i] = changed
			document.changed, found = true, true
		}
	}

	if !found {
		return e.nothingMatches(documents)
	}

	return nil
}

// nothingMatches names some of the objects that there are.
func (e edit) nothingMatches(documents []*document) error {
	var found []string

	for _, document := range documents {
		for _, object := range document.objects {
			if head := headOf(object); object != nil && (e.kind == "" || head.kind == e.kind) {
				found = append(found, head.kind+" "+head.name)
			}
		}
	}

	text := "the chart renders no " + cmp.Or(e.kind, "object")

	if len(found) > 0 {
		text = "rendered: " + strings.Join(found[:min(len(found), mostNamed)], ", ")
	}

	if more := len(found) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}

	return fmt.Errorf("%s matches no object (%s); hooks cannot be patched", e.what, text)
}

// mostNamed is how many objects an error names.
const mostNamed = 5

func (c compiled) operate(object map[string]any) (map[string]any, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}

	if encoded, err = c.operations.Apply(encoded); err != nil {
		return nil, err
	}

	var changed map[string]any
	if err := json.Unmarshal(encoded, &changed); err != nil {
		return nil, err
	}

	if len(changed) == 0 {
		return nil, errors.New("the patch removes the whole object")
	}

	return changed, nil
}

// merge gives nil when the patch deletes the object. Kind, name and namespace stay as they were, as kustomize
// has it (api/resource, ApplySmPatch).
func merge(object, patch map[string]any) (map[string]any, error) {
	into, err := yaml.FromMap(object)
	if err != nil {
		return nil, err
	}

	from, err := yaml.FromMap(patch)
	if err != nil {
		return nil, err
	}

	results, err := patchstrategicmerge.Filter{Patch: from}.Filter([]*yaml.RNode{into})
	if err != nil {
		return nil, err
	}

	if len(results) == 0 || results[0].IsNilOrEmpty() {
		return nil, nil
	}

	decoded, err := results[0].Map()
	if err != nil {
		return nil, err
	}

	changed, err := plain(decoded)
	if err != nil {
		return nil, err
	}

	for _, path := range [][]string{{"kind"}, {"metadata", "name"}, {"metadata", "namespace"}} {
		if err := restore(changed, object, path); err != nil {
			return nil, err
		}
	}

	return changed, nil
}

func restore(changed, object map[string]any, path []string) error {
	value, found, err := unstructured.NestedFieldCopy(object, path...)
	if err != nil {
		return err
	}

	if !found {
		unstructured.RemoveNestedField(changed, path...)

		return nil
	}

	return unstructured.SetNestedField(changed, value, path...)
}

// plain has only the types that the rest of an object has.
func plain(decoded map[string]any) (map[string]any, error) {
	encoded, err := json.Marshal(decoded)
	if err != nil {
		return nil, err
	}

	var object map[string]any

	return object, json.Unmarshal(encoded, &object)
}
