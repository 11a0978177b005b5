package places

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// Node is the value at a path of mappings; nil where there is none.
func Node(root *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		i := KeyOf(root, key)
		if i < 0 {
			return nil
		}

		root = root.Content[i+1]
	}

	return root
}

// KeyOf is where the content of a mapping has a key, which its value follows; -1 where there is none.
func KeyOf(mapping *yaml.Node, key string) int {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return -1
	}

	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return i
		}
	}

	return -1
}

// Remove removes a key of a mapping with its value, if it is there.
func Remove(mapping *yaml.Node, key string) {
	if i := KeyOf(mapping, key); i >= 0 {
		mapping.Content = slices.Delete(mapping.Content, i, i+2)
	}
}
