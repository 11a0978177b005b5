package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
)

// leaf is a value without parts, or an empty map or list, and where it is.
type leaf struct {
	path  fieldpath.Path
	value any
}

// flatten lists the leaves of decoded YAML, in the order of their paths' keys.
func flatten(content any) []leaf {
	return flattenAt(nil, content, nil)
}

func flattenAt(path fieldpath.Path, content any, leaves []leaf) []leaf {
	switch content := content.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(content)) {
			leaves = flattenAt(append(slices.Clip(path), key), content[key], leaves)
		}

		if len(content) > 0 {
			return leaves
		}
	case []any:
		for i, element := range content {
			leaves = flattenAt(append(slices.Clip(path), i), element, leaves)
		}

		if len(content) > 0 {
			return leaves
		}
	}

	return append(leaves, leaf{path: path, value: content})
}

// errNotData is all that is said about content that cannot be decoded: the YAML library quotes values.
var errNotData = errors.New("not plain YAML data")

// decodeNode turns a YAML node into maps with text keys, lists and scalars.
func decodeNode(node *yaml.Node) (content any, err error) {
	if node == nil {
		return nil, nil
	}

	defer func() {
		if recover() != nil {
			content, err = nil, errNotData
		}
	}()

	var decoded any
	if node.Decode(&decoded) != nil {
		return nil, errNotData
	}

	return textKeys(decoded)
}

// textKeys turns keys that are no text (8080, true) into text, as JSON has them. Two keys that become the same
// (0 and 0.0) are refused, because one of them would be lost.
func textKeys(content any) (any, error) {
	var err error

	switch content := content.(type) {
	case map[string]any:
		for key := range content {
			if content[key], err = textKeys(content[key]); err != nil {
				return nil, err
			}
		}

		return content, nil
	case map[any]any:
		converted := make(map[string]any, len(content))

		for key, value := range content {
			text := fmt.Sprint(key)
			if _, twice := converted[text]; twice {
				return nil, errNotData
			}

			if converted[text], err = textKeys(value); err != nil {
				return nil, err
			}
		}

		return converted, nil
	case []any:
		for i := range content {
			if content[i], err = textKeys(content[i]); err != nil {
				return nil, err
			}
		}

		return content, nil
	default:
		return content, nil
	}
}
