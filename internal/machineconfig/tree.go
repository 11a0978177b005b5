package machineconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// leaf is a value without parts, or an empty map or list, and its path: "machine.certSANs[0]".
type leaf struct {
	path  string
	value any
}

// flatten lists the leaves of decoded YAML, in the order of their paths' keys.
func flatten(content any) []leaf {
	return flattenAt("", content, nil)
}

func flattenAt(path string, content any, leaves []leaf) []leaf {
	switch content := content.(type) {
	case map[string]any:
		if len(content) == 0 {
			break
		}

		for _, key := range slices.Sorted(maps.Keys(content)) {
			leaves = flattenAt(join(path, key), content[key], leaves)
		}

		return leaves
	case []any:
		if len(content) == 0 {
			break
		}

		for i, element := range content {
			leaves = flattenAt(at(path, i), element, leaves)
		}

		return leaves
	}

	return append(leaves, leaf{path: path, value: content})
}

// join appends a key to a path. A key that would be mistaken for several is quoted.
func join(path, key string) string {
	if key == "" || strings.ContainsAny(key, ".[]\" ") {
		return under(path, key)
	}

	if path == "" {
		return key
	}

	return path + "." + key
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
