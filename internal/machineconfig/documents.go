package machineconfig

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// documents is a configuration being put together: what the machinery library understands, and the
// documents of unknown kinds, which it would refuse to load.
type documents struct {
	known   config.Provider
	unknown []rawDocument
	// generated is the known part before any patch.
	generated config.Provider
	// ineffective are the settings of patches without effect.
	ineffective []*FieldError
}

// rawDocument is a document of a kind the machinery library does not know.
type rawDocument struct {
	identity

	// text is the document as its author wrote it, without separator and with a final line break. When
	// several patches contribute to it, it is what they merge into.
	text string
}

// document is one document of a configuration as data. All but the content is shared, and not to be changed.
type document struct {
	id identity
	// content is decoded YAML, normalized by the machinery library where it can load the document.
	content any
	// provider is the loaded document, with all it says; nil when the library cannot load it.
	provider config.Provider
	// node is what was read.
	node *yaml.Node
}

const (
	patchKey    = "$patch"
	deleteValue = "delete"
)

// count is how many documents the configuration has.
func (d *documents) count() int { return len(d.known.Documents()) + len(d.unknown) }

// encode encodes all documents, the known ones without comments.
func (d *documents) encode() ([]byte, error) {
	encoded, err := d.known.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}

	buffer := bytes.NewBuffer(encoded)

	for _, document := range d.unknown {
		if buffer.Len() > 0 {
			buffer.WriteString("---\n")
		}

		buffer.WriteString(document.text)
	}

	return buffer.Bytes(), nil
}

// identity is what makes two documents the same one: a patch with the identity of a document changes it.
type identity struct{ apiVersion, kind, name string }

// String is the name of the document for users: "v1alpha1" for the main one, "kind" or "kind/name" for others.
func (i identity) String() string {
	switch {
	case i.kind == "":
		return mainDocument
	case i.name == "":
		return i.kind
	default:
		return i.kind + "/" + i.name
	}
}

// mainDocument is how the document without a kind is called, after its version field.
const mainDocument = "v1alpha1"

// chunk is the text of one document in a stream, with its separator line, and what was parsed from it.
type chunk struct {
	text string
	// node is the content of the document: a mapping, a sequence or a scalar. Nil when there is none
	// (comments alone).
	node *yaml.Node
}

// split cuts a YAML stream into its documents. Every line that starts with three dashes separates two
// documents, wherever it stands: YAML does not allow such a line inside of a scalar. So the text of each
// document is kept as it was written.
func split(text string) ([]chunk, error) {
	var chunks []chunk

	for _, part := range splitText(strings.ReplaceAll(text, "\r\n", "\n")) {
		node, err := parseDocument(part)
		if err != nil {
			return nil, err
		}

		chunks = append(chunks, chunk{text: part, node: node})
	}

	return chunks, nil
}

func splitText(text string) []string {
	var (
		parts   []string
		current strings.Builder
	)

	for line := range strings.Lines(text) {
		if isSeparator(line) && current.Len() > 0 && !isPrologue(current.String()) {
			parts = append(parts, current.String())
			current.Reset()
		}

		current.WriteString(line)
	}

	if current.Len() > 0 {
		parts = append(parts, current.String())
	}

	return parts
}

// isPrologue reports whether there is nothing but directives (%YAML 1.1) and comments: directives belong to the
// document after the separator that follows them.
func isPrologue(text string) bool {
	directives := false

	for line := range strings.Lines(text) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "%"):
			directives = true
		case line != "" && !strings.HasPrefix(line, "#"):
			return false
		}
	}

	return directives
}

func isSeparator(line string) bool {
	rest, found := strings.CutPrefix(line, "---")

	return found && (rest == "" || strings.ContainsAny(rest[:1], " \t\n"))
}

// parseDocument returns the content of the only document in text, or nil when there is none.
func parseDocument(text string) (node *yaml.Node, err error) {
	// The YAML library panics on some malformed input; machinery guards its loader in the same way.
	defer func() {
		if p := recover(); p != nil {
			node, err = nil, fmt.Errorf("cannot parse the YAML: %v", p)
		}
	}()

	if err := expansion.CheckYAML([]byte(text)); err != nil {
		return nil, err
	}

	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return nil, err
	}

	if document.Kind != yaml.DocumentNode || len(document.Content) == 0 || document.Content[0].Tag == "!!null" {
		return nil, nil
	}

	return document.Content[0], nil
}

// identify reads the identity of a document from its mapping.
func identify(mapping *yaml.Node) identity {
	return identity{
		apiVersion: scalarAt(mapping, "apiVersion"),
		kind:       scalarAt(mapping, "kind"),
		name:       scalarAt(mapping, "name"),
	}
}

func scalarAt(mapping *yaml.Node, key string) string {
	if value := places.Node(mapping, key); value != nil && value.Kind == yaml.ScalarNode {
		return value.Value
	}

	return ""
}

// isKnown asks the machinery library whether it can decode documents of that kind, by having it decode an
// empty one: its registry of kinds is internal. The document need not be valid.
func (i identity) isKnown() bool {
	if i.kind == "" {
		return true
	}

	empty, err := yaml.Marshal(map[string]string{"apiVersion": i.apiVersion, "kind": i.kind})
	if err != nil {
		return false
	}

	_, err = configloader.NewFromBytes(empty, configloader.WithNoValidation())

	return err == nil
}
