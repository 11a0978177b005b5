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

	return textKeys(decoded), nil
}

// textKeys turns keys that are no text (8080, true) into text, as JSON has them.
func textKeys(content any) any {
	switch content := content.(type) {
	case map[string]any:
		for key, value := range content {
			content[key] = textKeys(value)
		}

		return content
	case map[any]any:
		converted := make(map[string]any, len(content))
		for key, value := range content {
			converted[fmt.Sprint(key)] = textKeys(value)
		}

		return converted
	case []any:
		for i, value := range content {
			content[i] = textKeys(value)
		}

		return content
	default:
		return content
	}
}
