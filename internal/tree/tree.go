// Package tree is decoded YAML and JSON: maps with text keys, lists and scalars.
//
// The package is pure.
package tree

// Clone is a copy that shares no maps and lists with its original.
func Clone(content any) any {
	switch content := content.(type) {
	case map[string]any:
		return CloneMap(content)
	case []any:
		out := make([]any, len(content))
		for i, element := range content {
			out[i] = Clone(element)
		}

		return out
	default:
		return content
	}
}

// CloneMap is Clone of a map; that of none is an empty one.
func CloneMap(content map[string]any) map[string]any {
	out := make(map[string]any, len(content))
	for key, value := range content {
		out[key] = Clone(value)
	}

	return out
}
