package setting

import (
	"maps"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/labels"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// Labels are labels of the Kubernetes node, which Talos keeps equal to these and removes with them.
var Labels = define(definition[map[string]string]{
	name:   "labels",
	empty:  isEmptyMap,
	levels: byKey{},

	put: func(c *Config, value map[string]string) { c.add(places.NodeLabels, value) },

	read: func(c Config) map[string]string {
		return beyond(c.entries(places.NodeLabels), generatedLabels(c))
	},

	check: func(value map[string]string, found *problems, _ Target) {
		for _, key := range slices.Sorted(maps.Keys(value)) {
			checkQualifiedName(found, under("labels", key), key)

			if labels.ValidateLabelValue(value[key]) != nil {
				found.add(under("labels", key), quoted(value[key]), labelValueShape, "correct it, or use an annotation")
			}
		}
	},
})

// generatedLabels are the labels that the library itself gives to control planes (machinery 1.14,
// config/generate).
func generatedLabels(c Config) map[string]string {
	generated := map[string]string{}

	if !c.controlPlane() {
		return generated
	}

	if c.Contract.AddExcludeFromExternalLoadBalancer() {
		generated[constants.LabelExcludeFromExternalLB] = ""
	}

	if _, ok := places.Document[*k8s.KubeNodeConfigV1Alpha1](c.Documents); ok {
		generated[constants.LabelNodeRoleControlPlane] = ""
	}

	return generated
}

const labelValueShape = "up to 63 letters, digits, dots, dashes and underscores, with a letter or digit at both ends"

// checkQualifiedName looks at the name of a label, an annotation or a taint.
func checkQualifiedName(found *problems, field, name string) {
	if labels.ValidateQualifiedName(name) != nil {
		found.add(field, quoted(name), "a name of "+labelValueShape+", with or without a DNS name and a slash before it, "+
			"such as example.com/rack", "correct the name")
	}
}
