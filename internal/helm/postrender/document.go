package postrender

import (
	"bytes"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
)

// document is one rendered document.
type document struct {
	// text as it was rendered, with the line that separates it from the one before and its comments.
	text string
	// objects of it: one, or the items of a list. Nil for those that were deleted.
	objects []map[string]any
	// list contains the items, nil when there is none.
	list    map[string]any
	changed bool
}

func readDocuments(rendered string) ([]*document, error) {
	var documents []*document

	for i, text := range splitLines(rendered) {
		read, err := readDocument(text)
		if err != nil {
			return nil, fmt.Errorf("read document %d of the rendered manifest: %w", i+1, err)
		}

		documents = append(documents, read)
	}

	return documents, nil
}

// splitLines splits before each separator. YAML has none inside of texts: those are indented.
func splitLines(rendered string) []string {
	var (
		parts   []string
		current strings.Builder
	)

	for line := range strings.Lines(rendered) {
		if strings.HasPrefix(line, "---") && current.Len() > 0 {
			parts = append(parts, current.String())
			current.Reset()
		}

		current.WriteString(line)
	}

	return append(parts, current.String())
}

func readDocument(text string) (*document, error) {
	if err := expansion.CheckYAML([]byte(text)); err != nil {
		return nil, err
	}

	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, err
	}

	var content any
	if err := json.Unmarshal(encoded, &content); err != nil {
		return nil, err
	}

	read := &document{text: text}

	// what is no object, such as a comment alone, is Helm's matter
	object, isObject := content.(map[string]any)
	if !isObject || len(object) == 0 {
		return read, nil
	}

	items, isList, err := diff.Items(object)

	switch {
	case err != nil:
		return nil, err
	case isList:
		read.list, read.objects = object, items
	default:
		read.objects = []map[string]any{object}
	}

	return read, nil
}

func (d *document) writeTo(patched *bytes.Buffer) error {
	if !d.changed {
		patched.WriteString(d.text)

		return nil
	}

	content := d.content()
	if content == nil {
		return nil
	}

	encoded, err := yaml.Marshal(content)
	if err != nil {
		return fmt.Errorf("write the patched object: %w", err)
	}

	patched.WriteString(d.comments())
	patched.Write(encoded)

	return nil
}

// content is the object, or the list with what is left of it; nil when nothing is left.
func (d *document) content() map[string]any {
	if d.list == nil {
		return d.objects[0]
	}

	items := []any{}

	for _, object := range d.objects {
		if object != nil {
			items = append(items, object)
		}
	}

	if len(items) == 0 {
		return nil
	}

	d.list["items"] = items

	return d.list
}

// comments are the separator and the comments before the content, among them the name of the template.
func (d *document) comments() string {
	var comments strings.Builder

	for line := range strings.Lines(d.text) {
		if !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
			break
		}

		comments.WriteString(line)
	}

	return comments.String()
}
