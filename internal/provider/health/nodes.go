package health

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

func nodesAttribute() schema.Attribute {
	return tf.ComputedObjectMap("All nodes, by name, such as for a [repair](../guides/repair.md) of those that are not "+
		"Ready for a long time. Null if the Kubernetes API does not answer.", nodeAttributes())
}

func nodeAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"address":     tf.ComputedString("First address of the node in Kubernetes."),
		"role":        tf.ComputedString("`controlplane` or `worker`."),
		"ready":       tf.ComputedBool("Whether the node is Ready in Kubernetes."),
		"schedulable": tf.ComputedBool("Whether the node takes new pods: neither talosop nor another client cordoned it."),
		"last_change": tf.ComputedTime("When the Ready condition of the node last changed, by the record of Kubernetes " +
			"(RFC 3339, UTC). A change from `False` to `Unknown` counts, so the node may be not Ready for longer."),
		"reset_at": tf.ComputedTime("When `talosop_machine_reset` last began to wipe the machine (RFC 3339, UTC); null for " +
			"never. The annotation `talosop.dev/reset` of the node records it, also for a run that was killed."),
	}
}

var nodeType = tf.ObjectOf(nodeAttributes())

// nodesOf is nodes as attributes; null for nil, which means that no client listed them.
func nodesOf(nodes []kubestate.Node) types.Map {
	if nodes == nil {
		return types.MapNull(nodeType)
	}

	values := map[string]attr.Value{}

	for _, n := range nodes {
		values[n.Name] = types.ObjectValueMust(nodeType.AttrTypes, map[string]attr.Value{
			"address": tf.TextOrNull(n.Address()), "role": types.StringValue(string(cluster.RoleOf(n))),
			"ready": types.BoolValue(n.Ready), "schedulable": types.BoolValue(!n.Unschedulable),
			"last_change": tf.MomentOrNull(n.ReadySince), "reset_at": tf.MomentOrNull(n.ResetAt),
		})
	}

	return types.MapValueMust(nodeType, values)
}
