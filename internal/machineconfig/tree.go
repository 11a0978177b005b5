package machineconfig

import (
	"errors"
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/textkeys"
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

// errNotData is the only text about content that cannot be decoded: the YAML library quotes values.
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

	if content, err = textkeys.Of(decoded); err != nil {
		return nil, errNotData
	}

	return content, nil
}

// valueIn is the value at a path of maps, nil when there is none.
func valueIn(root map[string]any, path []string) any {
	var value any = root

	for _, key := range path {
		section, _ := value.(map[string]any)
		value = section[key]
	}

	return value
}

// sectionOf is the map that has the last key of a path; nil when there is none.
func sectionOf(root map[string]any, path []string) (section map[string]any, key string) {
	last := len(path) - 1
	section, _ = valueIn(root, path[:last]).(map[string]any)

	return section, path[last]
}

func deleteAt(root map[string]any, path []string) {
	section, key := sectionOf(root, path)
	delete(section, key)
}
