package machineconfig

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// mergeTag is the tag of the YAML key that merges the fields of other mappings (<<).
const mergeTag = "!!merge"

// withoutMergeKeys writes out the documents that have merge keys: the loader of Talos takes them for unknown fields
// (machinery 1.14, xyaml.CheckUnknownKeys), and machines get none of them.
func withoutMergeKeys(field string, chunks []chunk) ([]chunk, error) {
	for i, c := range chunks {
		if c.node == nil || !hasMergeKey(c.node) {
			continue
		}

		if !mergesMappings(c.node) {
			return nil, &FieldError{
				Field: field, Found: "a merge key (<<) whose value is not a mapping",
				Allowed: "a mapping, or a list of mappings", Fix: "use an anchor of a mapping", Err: ErrNotPatch,
			}
		}

		c.node = writtenOut(c.node)

		encoded, err := encodeNode(c.node)
		if err != nil {
			return nil, fmt.Errorf("resolve merge keys: %w", err)
		}

		c.text = "---\n" + string(encoded)
		chunks[i] = c
	}

	return chunks, nil
}

// mergesMappings reports whether all merge keys have mappings, or lists of mappings.
func mergesMappings(node *yaml.Node) bool {
	for i, inner := range node.Content {
		merged := node.Kind == yaml.MappingNode && i%2 == 1 && node.Content[i-1].ShortTag() == mergeTag

		if merged && !isMergeable(inner, true) || !mergesMappings(inner) {
			return false
		}
	}

	return true
}

func isMergeable(node *yaml.Node, orList bool) bool {
	switch {
	case node.Kind == yaml.AliasNode:
		return isMergeable(node.Alias, orList)
	case node.Kind == yaml.SequenceNode && orList:
		return !slices.ContainsFunc(node.Content, func(one *yaml.Node) bool { return !isMergeable(one, false) })
	default:
		return node.Kind == yaml.MappingNode
	}
}

func hasMergeKey(node *yaml.Node) bool {
	for i, inner := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 && inner.ShortTag() == mergeTag || hasMergeKey(inner) {
			return true
		}
	}

	return false
}

// writtenOut is a value without aliases and merge keys. No alias is within itself: parseDocument refuses those.
func writtenOut(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return writtenOut(node.Alias)
	}

	plain := *node
	plain.Anchor, plain.Content = "", nil

	if node.Kind != yaml.MappingNode {
		for _, inner := range node.Content {
			plain.Content = append(plain.Content, writtenOut(inner))
		}

		return &plain
	}

	// Fields of the mapping itself win, and then those of the mapping that is named first.
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].ShortTag() != mergeTag {
			plain.Content = append(plain.Content, writtenOut(node.Content[i]), writtenOut(node.Content[i+1]))
		}
	}

	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].ShortTag() == mergeTag {
			addMissing(&plain, writtenOut(node.Content[i+1]))
		}
	}

	return &plain
}

func addMissing(mapping, from *yaml.Node) {
	if from.Kind == yaml.SequenceNode {
		for _, one := range from.Content {
			addMissing(mapping, one)
		}

		return
	}

	for i := 0; i+1 < len(from.Content); i += 2 {
		if places.Node(mapping, from.Content[i].Value) == nil {
			mapping.Content = append(mapping.Content, from.Content[i], from.Content[i+1])
		}
	}
}

// duplicateKey finds a key that a mapping has twice. Nil when there is none.
func duplicateKey(path fieldpath.Path, node *yaml.Node) fieldpath.Path {
	seen := map[string]bool{}

	for i, inner := range node.Content {
		at := append(path[:len(path):len(path)], i)

		if node.Kind == yaml.MappingNode {
			key := node.Content[i-i%2].Value
			at[len(path)] = key

			if i%2 == 0 && seen[key] && inner.ShortTag() != mergeTag {
				return at
			}

			seen[key] = true
		}

		if found := duplicateKey(at, inner); found != nil {
			return found
		}
	}

	return nil
}
