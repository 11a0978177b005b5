package setting

import (
	"maps"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"github.com/siderolabs/talos/pkg/machinery/labels"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// Taints are taints of the Kubernetes node by their keys, each <effect> or <value>:<effect>.
var Taints = define(definition[map[string]string]{
	name:   "taints",
	empty:  isEmptyMap,
	levels: byKey{},

	put: func(c *Config, value map[string]string) { c.add(places.NodeTaints, value) },

	read: func(c Config) map[string]string {
		if _, ok := places.Document[*k8s.KubeNodeConfigV1Alpha1](c.Documents); !ok || !c.controlPlane() {
			return beyond(c.entries(places.NodeTaints), nil)
		}

		// That of control planes is the setting for scheduling.
		return beyond(c.entries(places.NodeTaints), map[string]string{
			constants.LabelNodeRoleControlPlane: constants.TaintEffectNoSchedule})
	},

	check: func(value map[string]string, found *problems, t Target) {
		for _, key := range slices.Sorted(maps.Keys(value)) {
			field := under("taints", key)
			checkQualifiedName(found, field, key)

			taint, effect := labels.ParseTaint(value[key])

			switch {
			case value[key] == "" && t.Partial:
			case !slices.Contains(constants.ValidEffects, effect):
				found.add(field, quoted(value[key]), "one of the effects "+strings.Join(constants.ValidEffects, ", ")+
					", or a value and a colon before it, such as gpu:NoSchedule", "write the effect as it is here")
			case labels.ValidateLabelValue(taint) != nil:
				found.add(field, quoted(value[key]), "a value of "+labelValueShape, "correct the part before the colon")
			}
		}
	},
})
