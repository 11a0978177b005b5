package machineconfig

import (
	"bytes"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
	"github.com/talosop/terraform-provider-talosop/internal/tree"
)

// writtenFields is what the sources of a configuration write of its documents, as mappings, lists and scalar nodes;
// null is nil. The machinery library writes some fields that have no value (machinery 1.14, config/types: those without
// omitempty), and such a field would change what it is merged into.
type writtenFields map[identity]map[string]any

// content is the part of a document that one source writes.
type content struct {
	identity

	fields map[string]any
}

func contentsOf(chunks []chunk) []content {
	var contents []content

	for _, c := range chunks {
		if c.node == nil {
			continue
		}

		if fields, ok := fieldsOf(c.node).(map[string]any); ok {
			contents = append(contents, content{identify(c.node), fields})
		}
	}

	return contents
}

// fieldsOf keeps keys as they are written: the decoder would make 31 of 0x1F.
func fieldsOf(node *yaml.Node) any {
	switch {
	case node.Kind == yaml.AliasNode:
		return fieldsOf(node.Alias)
	case node.Kind == yaml.MappingNode:
		fields := map[string]any{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i].Value, node.Content[i+1]
			if fields[key] = fieldsOf(value); key == patchKey {
				fields[key] = value.Value
			}
		}

		return fields
	case node.Kind == yaml.SequenceNode:
		list := make([]any, len(node.Content))
		for i, element := range node.Content {
			list[i] = fieldsOf(element)
		}

		return list
	case node.ShortTag() == "!!null":
		return nil
	default:
		return node
	}
}

// add merges what another source writes.
func (w writtenFields) add(contents []content) {
	for _, c := range contents {
		if c.fields[patchKey] == deleteValue {
			delete(w, c.identity)

			continue
		}

		present := w[c.identity]
		if present == nil {
			present = map[string]any{}
		}

		w[c.identity] = mergeMaps(present, tree.CloneMap(c.fields))
	}
}

// only is an encoded configuration without the fields that no source writes. Documents of which nothing is known stay
// as they are.
func (w writtenFields) only(encoded []byte) ([]byte, error) {
	chunks, err := split(string(encoded))
	if err != nil {
		return nil, fmt.Errorf("read merged documents: %w", err)
	}

	var text bytes.Buffer

	for _, c := range chunks {
		fields, ok := w[identity{}], false
		if c.node != nil {
			fields, ok = w[identify(c.node)]
		}

		if !ok {
			text.WriteString(c.text)

			continue
		}

		keepFields(c.node, fields)

		if err := restore(c.node, fields); err != nil {
			return nil, err
		}

		document, err := encodeNode(c.node)
		if err != nil {
			return nil, fmt.Errorf("encode merged documents: %w", err)
		}

		if text.Len() > 0 {
			text.WriteString("---\n")
		}

		text.Write(document)
	}

	return text.Bytes(), nil
}

// keepFields drops from a value what is not written. What is written in another form, such as a text for a mapping,
// stays as the library writes it.
func keepFields(node *yaml.Node, fields any) {
	switch fields := fields.(type) {
	case map[string]any:
		if node.Kind == yaml.MappingNode {
			keepKeys(node, fields)
		}
	case []any:
		if node.Kind != yaml.SequenceNode {
			return
		}

		for i, element := range node.Content {
			keepFields(element, elementOf(fields, element, i, len(node.Content)))
		}
	}
}

func keepKeys(mapping *yaml.Node, fields map[string]any) {
	var kept []*yaml.Node

	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]

		inner, ok := fields[key.Value]
		if !ok {
			continue
		}

		// An empty value would replace others, null does not.
		if inner == nil && len(value.Content) == 0 && (value.Kind != yaml.ScalarNode || value.Value == "") {
			value = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
		}

		keepFields(value, inner)

		kept = append(kept, key, value)
	}

	mapping.Content = kept
}

// encryptionKey is the field that the library leaves out while it has no keys and no provider, whatever else it has
// (EncryptionSpec.IsZero, config/types/block).
const encryptionKey = "encryption"

// restore adds the field that the library left out.
func restore(document *yaml.Node, fields map[string]any) error {
	if fields[encryptionKey] == nil || places.Node(document, encryptionKey) != nil {
		return nil
	}

	value := &yaml.Node{}
	if err := value.Encode(fields[encryptionKey]); err != nil {
		return fmt.Errorf("encode merged documents: %w", err)
	}

	document.Content = append(document.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: encryptionKey}, value)

	return nil
}

// elementKeys are by what Talos merges elements of lists (the Merge methods of machinery 1.14, config/types: network
// interfaces, VLANs, admission plugins, files of extension services, rules for images, which may have none).
var elementKeys = []string{"interface", "deviceSelector", "vlanId", "name", "mountPath", "image"}

// elementOf is what is written of an element, of a list that has all elements of all sources: in some lists those of
// later sources change or replace earlier ones.
func elementOf(list []any, element *yaml.Node, index, length int) any {
	if len(list) == length {
		return list[index]
	}

	same := map[string]any{}

	for _, candidate := range list {
		fields, ok := candidate.(map[string]any)
		if ok && (hasKeyOf(element, fields) || hasAll(element, fields)) {
			same = mergeMaps(same, tree.CloneMap(fields))
		}
	}

	if len(same) == 0 {
		return nil
	}

	return same
}

func hasKeyOf(element *yaml.Node, fields map[string]any) bool {
	return slices.ContainsFunc(elementKeys, func(key string) bool {
		value := places.Node(element, key)

		return value != nil && fields[key] != nil && hasAll(value, fields[key])
	})
}

// hasAll reports whether a value has all the written fields.
func hasAll(value *yaml.Node, fields any) bool {
	switch fields := fields.(type) {
	case map[string]any:
		for key, inner := range fields {
			if found := places.Node(value, key); found == nil || !hasAll(found, inner) {
				return false
			}
		}

		return true
	case []any:
		return len(fields) == len(value.Content)
	case *yaml.Node:
		return fields.Value == value.Value
	default:
		return true
	}
}
