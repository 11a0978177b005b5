// Package unmanaged is the nodes whose machines belong to no resource: those of an autoscaler, or of an instance
// group, that join by themselves.
package unmanaged

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// node is an unmanaged node, by name.
type node struct {
	Address        types.String `tfsdk:"address"`
	Role           types.String `tfsdk:"role"`
	Ready          types.Bool   `tfsdk:"ready"`
	Cordoned       types.Bool   `tfsdk:"cordoned"`
	TalosVersion   types.String `tfsdk:"talos_version"`
	KubeletVersion types.String `tfsdk:"kubelet_version"`
	ProviderID     types.String `tfsdk:"provider_id"`
	Labels         types.Map    `tfsdk:"labels"`
}

// Attribute is the attribute observed_others of a resource that creates clusters.
func Attribute() schema.MapNestedAttribute {
	return tf.ComputedObjectMap("Nodes without a talosop resource, by name, from the last refresh: nodes of "+
		"autoscalers and instance groups, whose machines join the cluster themselves. They come and go without a plan "+
		"([guide](../guides/autoscaling)). Null until the Kubernetes API answers.", map[string]schema.Attribute{
		"address": tf.ComputedString("First address of the node in Kubernetes."),
		"role":    tf.ComputedString("`controlplane` or `worker`."),
		"ready":   tf.ComputedBool("Whether the node is Ready in Kubernetes."),
		"cordoned": tf.ComputedBool("Whether talosop cordoned the node for an upgrade and has not uncordoned it " +
			"yet."),
		"talos_version":   tf.ComputedString("Running Talos version; null for another operating system."),
		"kubelet_version": tf.ComputedString("Version of the kubelet."),
		"provider_id":     tf.ComputedString("ID of the machine at its cloud; null without a cloud controller."),
		"labels":          tf.ComputedStringMap("Labels of the node, such as those of its node group."),
	})
}

// Described is the same with another description.
func Described(description string) schema.MapNestedAttribute {
	attribute := Attribute()
	attribute.MarkdownDescription = description

	return attribute
}

// nodeType is the type of a node.
func nodeType() types.ObjectType { return tf.ObjectOf(Attribute().NestedObject.Attributes) }

// None is the attribute before Kubernetes was asked.
func None() types.Map { return types.MapNull(nodeType()) }

// Unknown is the attribute in a plan that creates the cluster.
func Unknown() types.Map { return types.MapUnknown(nodeType()) }

// Seen is the unmanaged nodes in a snapshot; last, while the Kubernetes API does not answer.
func Seen(want cluster.Spec, have cluster.Snapshot, last types.Map) types.Map {
	switch {
	case have.Kubernetes.Reachable:
		return Of(cluster.Unmanaged(want, have))
	case last.IsNull() || last.IsUnknown():
		return None()
	default:
		return last
	}
}

// Of is nodes as attributes; null for nil, which means that no client listed them.
func Of(nodes []kubestate.Node) types.Map {
	if nodes == nil {
		return None()
	}

	values := map[string]attr.Value{}
	kind := nodeType()

	for _, n := range nodes {
		labels := map[string]attr.Value{}
		for key, text := range n.Labels {
			labels[key] = types.StringValue(text)
		}

		values[n.Name] = types.ObjectValueMust(kind.AttrTypes, map[string]attr.Value{
			"address": tf.TextOrNull(n.Address()), "role": types.StringValue(string(cluster.RoleOf(n))),
			"ready":         types.BoolValue(n.Ready),
			"cordoned":      types.BoolValue(n.HeldBack()),
			"talos_version": tf.TextOrNull(n.TalosVersion), "kubelet_version": tf.TextOrNull(n.KubeletVersion),
			"provider_id": tf.TextOrNull(n.ProviderID), "labels": types.MapValueMust(types.StringType, labels),
		})
	}

	return types.MapValueMust(kind, values)
}

// Recorded are the nodes in state, ordered by name.
func Recorded(ctx context.Context, r *tf.Reader, seen types.Map) []kubestate.Node {
	nodes := []kubestate.Node{}
	records := tf.Objects[node](ctx, r, seen)

	for _, name := range slices.Sorted(maps.Keys(records)) {
		n := records[name]
		recorded := kubestate.Node{Name: name, Ready: n.Ready.ValueBool(), KubeletVersion: n.KubeletVersion.ValueString(),
			TalosVersion: n.TalosVersion.ValueString(), ProviderID: n.ProviderID.ValueString(), Labels: r.TextMap(n.Labels),
			ControlPlane: n.Role.ValueString() == string(step.ControlPlane)}

		recorded.Cordoned, recorded.Unschedulable = n.Cordoned.ValueBool(), n.Cordoned.ValueBool()

		if address := n.Address.ValueString(); address != "" {
			recorded.Addresses = []string{address}
		}

		nodes = append(nodes, recorded)
	}

	return nodes
}
