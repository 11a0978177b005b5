package unmanagedworkers

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/unmanaged"
)

func attributes(ctx context.Context) map[string]schema.Attribute {
	changes := rollout.Attributes()

	config := tf.RequiredString("The configuration of the machines: `config` of `talosop_machine_config`, without a " +
		"hostname. A change configures each matching node, without a reboot where Talos needs none, otherwise drained. " +
		"Every machine keeps its hostname and its keys; the kubelet follows once no API server is older.")
	config.Sensitive = true

	budget := rollout.MaxUnavailable()
	budget.MarkdownDescription = "How many of the nodes may be out of service or get their configuration at once, in " +
		"the format of `max_unavailable` of workers (default `1`)." + tf.TerraformOnly

	return map[string]schema.Attribute{
		"cluster": clusterhandle.KeptObject(tf.RequiredObject("Handle of the cluster: `cluster` of "+
			"`talosop_control_plane` or `talosop_cluster`, or an object that you write with at least `name`, `endpoint`, "+
			"`secrets` and `talos_endpoints`. A change alone does nothing to machines.",
			clusterhandle.AccessAttributes()), "talos_version", "kubernetes_version", "phase"),
		"selector": unmanaged.Selector(". Control planes and nodes of other talosop resources never match. A change " +
			"only observes the nodes that match then, and the next plan lists them."),
		"config":             config,
		"max_unavailable":    budget,
		"drain":              changes["drain"],
		"health_checks":      changes["health_checks"],
		"hooks":              changes["hooks"],
		"maintenance_window": changes["maintenance_window"],
		"timeouts": tf.TimeoutsAttribute(ctx, tf.TerraformOnly, map[string]string{
			string(tf.OpCreate): "Time to observe the machines. Default: `30m`.",
			string(tf.OpRead):   "Time to observe the machines. Default: `30m`.",
			string(tf.OpUpdate): "Time to configure all machines. Default: `30m`.",
			string(tf.OpDelete): "Has no effect: a destroy makes no requests.",
		}),
		"nodes": nodesAttribute(),
		"operations": tf.ComputedStrings("In a plan: the steps of the apply, in order; a create has none. The next " +
			"refresh empties it."),
		"impact": machines.ImpactAttribute(),
	}
}

func nodesAttribute() schema.MapNestedAttribute {
	return tf.ComputedObjectMap("The matching nodes by name, from the last refresh or apply. They come and go without a "+
		"plan; null until the Kubernetes API answers.", map[string]schema.Attribute{
		"address": tf.ComputedString("First address of the node in Kubernetes."),
		"ready":   tf.ComputedBool("Whether the node is Ready in Kubernetes."),
		"cordoned": tf.ComputedBool("Whether talosop cordoned the node for a change and has not uncordoned it yet. The " +
			"next apply does."),
		"talos_version":   tf.ComputedString("Running Talos version."),
		"kubelet_version": tf.ComputedString("Version of the kubelet."),
		"drift": tf.ComputedStrings("How the machine differs from `config`, one line each, without values of the " +
			"configuration. The next apply corrects it."),
	})
}

// nodeType is the type of a node.
func nodeType() types.ObjectType { return tf.ObjectOf(nodesAttribute().NestedObject.Attributes) }

func impactType() map[string]attr.Type {
	return tf.ObjectOf(machines.ImpactAttribute().Attributes).AttrTypes
}
