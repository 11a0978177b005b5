package machineconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
)

// scrubber removes secrets of a configuration from messages: some validations of the machinery library quote
// the value they refuse, a WireGuard key for instance.
type scrubber struct{ secrets []string }

// newScrubber collects what RedactSecrets would hide. With needed false it is free and must not be used.
func newScrubber(provider config.Provider, needed bool) (scrubber, error) {
	if !needed {
		return scrubber{}, nil
	}

	plain, err := encodedValues(provider)
	if err != nil {
		return scrubber{}, err
	}

	redacted, err := encodedValues(provider.RedactSecrets(redactedValue))
	if err != nil {
		return scrubber{}, err
	}

	var s scrubber

	for value := range plain {
		if !redacted[value] && len(value) >= shortestSecret {
			s.secrets = append(s.secrets, value)
		}
	}

	// A secret may contain another one: the longest comes first.
	slices.SortFunc(s.secrets, func(a, b string) int { return len(b) - len(a) })

	return s, nil
}

func (s scrubber) scrub(message string) string {
	for _, secret := range s.secrets {
		message = strings.ReplaceAll(message, secret, "(sensitive)")
	}

	return message
}

// encodedValues is the set of all text in a configuration.
func encodedValues(provider config.Provider) (map[string]bool, error) {
	encoded, err := provider.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}

	chunks, err := split(string(encoded))
	if err != nil {
		return nil, fmt.Errorf("read encoded configuration: %w", err)
	}

	values := map[string]bool{}

	for _, c := range chunks {
		content, err := decodeNode(c.node)
		if err != nil {
			return nil, err
		}

		for _, leaf := range flatten(content) {
			values[fmt.Sprint(leaf.value)] = true
		}
	}

	return values, nil
}

// Redacted is a configuration in its order, with Sensitive in the place of each value that Diff does not show.
func Redacted(cfg []byte) (string, error) {
	documents, err := loadWhole(cfg)
	if err != nil {
		return "", fmt.Errorf("redact configuration: %w", err)
	}

	texts := make([]string, len(documents))

	for i, d := range documents {
		var unread error

		// The text counts and not its meaning: a form that Talos does not write is hidden.
		d.content, unread = decodeNode(d.node)
		hidden, unloaded := hiddenPaths(d)
		root, unplain := plainNode(d.node)

		if err := errors.Join(unread, unloaded, unplain); err != nil {
			return "", fmt.Errorf("redact document %s: %w", d.id, err)
		}

		redact(root, nil, func(path fieldpath.Path) bool { return hidden(path) && !d.identifies(path) })

		encoded, err := encodeNode(root)
		if err != nil {
			return "", errNotData
		}

		texts[i] = string(encoded)
	}

	return strings.Join(texts, "---\n"), nil
}

// withoutSecrets is a patch with the values that Redacted hides hidden, and without comments.
func withoutSecrets(patch string) (string, error) {
	chunks, err := split(patch)
	if err != nil {
		return "", fmt.Errorf("redact patch: %w", errNotData)
	}

	var texts []string

	for _, c := range chunks {
		if c.node == nil {
			continue
		}

		text, err := chunkWithoutSecrets(c)
		if err != nil {
			return "", fmt.Errorf("redact patch: %w", err)
		}

		texts = append(texts, text)
	}

	return strings.Join(texts, "---\n"), nil
}

func chunkWithoutSecrets(c chunk) (string, error) {
	root, err := plainNode(c.node)
	if err != nil {
		return "", err
	}

	// The library reads no deletes outside of patches.
	values := cloneNode(root, map[*yaml.Node]*yaml.Node{})
	dropDeletes(values)

	encoded, err := encodeNode(values)
	if err != nil {
		return "", errNotData
	}

	d, err := chunk{text: string(encoded), node: values}.loaded()
	if err != nil {
		return "", err
	}

	hidden, err := hiddenPaths(d)
	if err != nil {
		return "", err
	}

	redact(root, nil, func(path fieldpath.Path) bool {
		return path[len(path)-1] != patchKey && hidden(path) && !d.identifies(path)
	})

	text, err := encodeNode(root)

	return string(text), err
}

// dropDeletes removes what a patch deletes.
func dropDeletes(node *yaml.Node) {
	var kept []*yaml.Node

	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if value := node.Content[i+1]; node.Content[i].Value != patchKey && scalarAt(value, patchKey) == "" {
			kept = append(kept, node.Content[i], value)
		}
	}

	if node.Kind == yaml.MappingNode {
		node.Content = kept
	}

	for _, inner := range node.Content {
		dropDeletes(inner)
	}
}

// redact hides values below a node, which has no aliases.
func redact(node *yaml.Node, path fieldpath.Path, hidden func(fieldpath.Path) bool) {
	switch {
	case node.Kind == yaml.MappingNode:
		for i := 1; i < len(node.Content); i += 2 {
			redact(node.Content[i], append(slices.Clip(path), any(node.Content[i-1].Value)), hidden)
		}
	case node.Kind == yaml.SequenceNode:
		for i, element := range node.Content {
			redact(element, append(slices.Clip(path), any(i)), hidden)
		}
	case node.Tag != "!!null" && hidden(path):
		*node = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: Sensitive}
	default:
		node.Value = userinfoPattern.ReplaceAllString(node.Value, "//"+Sensitive+"@")
	}
}
