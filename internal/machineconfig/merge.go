package machineconfig

import (
	"errors"
	"fmt"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/container"
	"go.yaml.in/yaml/v4"
)

// Merge applies patches to a configuration, one after the other, as Generate does; or to a patch, which makes one of
// all that does the same as applying each. What needs a configuration to be applied to, which are deletions and JSON
// 6902 patches, is refused where base is a patch. Errors are *FieldError of "base" and "patches[n]".
func Merge(base string, patches []string) (string, error) {
	merged, err := documentsOf("base", base)
	if err != nil {
		return "", err
	}

	whole := merged.isWhole()
	said := merged.said

	for i, text := range patches {
		field := at("patches", i)

		parsed, err := parsePatch(field, text)
		if err != nil {
			return "", err
		}

		if !whole && (parsed.operations != nil || deletes(text)) {
			return "", &FieldError{
				Field: field, Found: "a deletion or a JSON 6902 patch, and base is a patch itself",
				Allowed: "configuration documents, as long as base is no whole machine configuration",
				Fix:     "keep this patch apart, or give the configuration that it changes as base", Err: ErrNotPatch,
			}
		}

		if err := merged.apply(field, parsed); err != nil {
			return "", err
		}

		said = append(said, parsed.main...)
	}

	encoded, err := merged.encode()
	if err != nil || whole {
		return string(encoded), err
	}

	return withoutUnsaid(encoded, said)
}

// part is a configuration or a part of one, with what it says of the main document.
type part struct {
	documents

	said []map[string]any
}

// documentsOf reads a configuration, or a part of one.
func documentsOf(field, text string) (*part, error) {
	parsed, err := parsePatch(field, text)
	if err != nil {
		return nil, err
	}

	if parsed.operations != nil || deletes(text) {
		return nil, &FieldError{
			Field: field, Found: "a deletion or a JSON 6902 patch, with nothing to apply it to",
			Allowed: "configuration documents", Fix: "give what it changes first", Err: ErrNotPatch,
		}
	}

	var known []config.Document
	if parsed.merge != nil {
		known = parsed.merge.Documents()
	}

	provider, err := container.New(known...)
	if err != nil {
		return nil, loadError(field, err)
	}

	return &part{documents{known: provider, unknown: parsed.unknown}, parsed.main}, nil
}

// withoutUnsaid takes out of the main document what is empty there and nobody said: the machinery library writes some
// fields that have no value (machinery 1.14, types/v1alpha1: those without omitempty).
func withoutUnsaid(encoded []byte, said []map[string]any) (string, error) {
	chunks, err := split(string(encoded))
	if err != nil {
		return "", fmt.Errorf("read merged documents: %w", err)
	}

	var text strings.Builder

	for _, c := range chunks {
		if c.node == nil || identify(c.node).kind != "" {
			text.WriteString(c.text)

			continue
		}

		var sources []any
		for _, source := range said {
			sources = append(sources, source)
		}

		dropUnsaid(c.node, sources)

		main, err := encodeNode(c.node)
		if err != nil {
			return "", fmt.Errorf("encode merged documents: %w", err)
		}

		if text.Len() > 0 {
			text.WriteString("---\n")
		}

		text.Write(main)
	}

	return text.String(), nil
}

// dropUnsaid drops empty values of a mapping that none of the sources has.
func dropUnsaid(mapping *yaml.Node, sources []any) {
	var kept []*yaml.Node

	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]

		var below []any

		for _, source := range sources {
			if content, ok := source.(map[string]any); ok {
				if inner, ok := content[key.Value]; ok {
					below = append(below, inner)
				}
			}
		}

		if value.Kind == yaml.MappingNode {
			dropUnsaid(value, below)
		}

		if len(below) > 0 || len(value.Content) > 0 || value.Kind == yaml.ScalarNode && !isEmpty(value) {
			kept = append(kept, key, value)
		}
	}

	mapping.Content = kept
}

func isEmpty(scalar *yaml.Node) bool { return scalar.Value == "" || scalar.Tag == "!!null" }

// isWhole is whether documents are the configuration of a machine, as opposed to a part of one: no patch names the
// role.
func (d *documents) isWhole() bool {
	main := d.known.RawV1Alpha1()

	return main != nil && main.MachineConfig != nil && main.MachineConfig.MachineType != ""
}

// deletes is whether a patch takes something away. What cannot be read does not.
func deletes(text string) bool {
	chunks, err := split(text)
	if err != nil {
		return false
	}

	for _, c := range chunks {
		if content, err := decodeNode(c.node); err == nil && hasDelete(content) {
			return true
		}
	}

	return false
}

// notConfiguration is the error for an argument that cannot be read. It quotes nothing.
func notConfiguration(field string, err error) error {
	reason := withoutQuotes(err.Error())
	if errors.Is(err, errNotData) {
		reason = errNotData.Error()
	}

	return &FieldError{
		Field: field, Found: fmt.Sprintf("what cannot be read as a configuration (%s)", reason),
		Allowed: "the documents of a machine configuration", Fix: "check indentation and quoting", Err: ErrNotYAML,
	}
}
