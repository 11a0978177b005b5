package remainder

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// Patches are the texts of a remainder: one that takes out, where there is anything to take out, and one that adds.
func (r Remainder) Patches() ([]string, error) {
	var patches []string

	for _, part := range []func(document) (map[string]any, bool){
		func(d document) (map[string]any, bool) { return d.deletes, len(d.deletes) > 0 },
		func(d document) (map[string]any, bool) { return d.adds, d.isNew || len(d.adds) > 0 },
	} {
		text, err := r.patch(part)
		if err != nil {
			return nil, err
		}

		if text != "" {
			patches = append(patches, text)
		}
	}

	return patches, nil
}

func (r Remainder) patch(part func(document) (map[string]any, bool)) (string, error) {
	var texts []string

	for _, name := range slices.SortedFunc(maps.Keys(r.documents), mainFirst) {
		d := r.documents[name]

		content, written := part(d)
		if !written {
			continue
		}

		text, err := encode(d.Document, content)
		if err != nil {
			return "", fmt.Errorf("write document %s: %w", name, err)
		}

		texts = append(texts, text)
	}

	return strings.Join(texts, "---\n"), nil
}

func mainFirst(a, b string) int {
	rank := func(name string) int {
		if name == "v1alpha1" {
			return 0
		}

		return 1
	}

	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// encode writes a document with its identity first.
func encode(of machineconfig.Document, content map[string]any) (string, error) {
	var text bytes.Buffer

	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)

	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}

	for _, field := range []struct{ key, value string }{
		{"apiVersion", of.APIVersion}, {"kind", of.Kind}, {"name", of.Name},
	} {
		if of.Kind != "" && field.value != "" {
			root.Content = append(root.Content, scalar(field.key), scalar(field.value))
		}
	}

	for _, key := range slices.Sorted(maps.Keys(content)) {
		value := &yaml.Node{}
		if err := value.Encode(content[key]); err != nil {
			return "", err
		}

		root.Content = append(root.Content, scalar(key), value)
	}

	if err := encoder.Encode(root); err != nil {
		return "", err
	}

	return text.String(), encoder.Close()
}

func scalar(text string) *yaml.Node {
	node := &yaml.Node{}
	node.SetString(text)

	return node
}
