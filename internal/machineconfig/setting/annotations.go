package setting

import (
	"maps"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/labels"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// Annotations are annotations of the Kubernetes node.
var Annotations = define(definition[map[string]string]{
	name:   "annotations",
	empty:  isEmptyMap,
	levels: byKey{},

	put: func(c *Config, value map[string]string) { c.add(places.NodeAnnotations, value) },

	read: func(c Config) map[string]string { return beyond(c.entries(places.NodeAnnotations), nil) },

	check: func(value map[string]string, found *problems, _ Target) {
		for _, key := range slices.Sorted(maps.Keys(value)) {
			checkQualifiedName(found, under("annotations", key), key)

			// Those of Talos say which labels, annotations and taints are its own.
			if labels.ValidateAnnotations(map[string]string{key: ""}) != nil && strings.HasPrefix(key, "talos.dev/") {
				found.add(under("annotations", key), "an annotation that Talos uses for its own data", "any other", "remove it")
			}
		}

		if labels.ValidateAnnotations(value) != nil && size(value) > labels.TotalAnnotationSizeLimitB {
			found.add("annotations", "more than 256 KiB", "annotations of 256 KiB in total", "shorten or remove some")
		}
	},
})

// size is the number of bytes in a map.
func size(value map[string]string) (bytes int64) {
	for key, text := range value {
		bytes += int64(len(key) + len(text))
	}

	return bytes
}
