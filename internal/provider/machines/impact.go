package machines

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// ImpactAttribute is what a plan does to running machines, for rules on its JSON.
func ImpactAttribute() schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Computed: true,
		MarkdownDescription: "In a plan: what the apply does to machines in service, for policies " +
			"([guide](../guides/plans-and-policies)). A machine is only in the first set that applies of `removed`, " +
			"`wiped`, `upgraded`, `pods_replaced`, `rebooted` and `drained`. Parts that depend on unknown values are " +
			"unknown, and the next refresh empties it.",
		Attributes: map[string]schema.Attribute{
			"drained": machineNames("Machines that are drained and keep running."),
			"rebooted": machineNames("Machines that reboot for another reason than an upgrade of Talos, drained first or " +
				"not."),
			"upgraded": machineNames("Machines that get another Talos version, or the same version from another image. " +
				"They reboot, or get other pods in containers, drained first or not."),
			"kubernetes_upgraded": machineNames("Machines whose Kubernetes components change, whatever else happens to them."),
			"wiped":               machineNames("Machines that lose their data and join again."),
			"removed": machineNames("Machines that leave the cluster permanently. The reset of a machine wipes " +
				"it."),
			"pods_replaced": machineNames("Machines in containers whose pods are deleted and recreated."),
			"ends_cluster":  tf.ComputedBool("Whether the apply resets the last control plane, and with it the cluster."),
		},
	}
}

func machineNames(description string) schema.SetAttribute {
	return schema.SetAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: description}
}

// impactType is the type of the attribute.
func impactType() map[string]attr.Type { return tf.ObjectOf(ImpactAttribute().Attributes).AttrTypes }

// ImpactOf is an impact as a plan value.
func ImpactOf(i machineset.Impact) types.Object {
	i = i.Once()

	return types.ObjectValueMust(impactType(), map[string]attr.Value{
		"drained": tf.TextSet(i.Drained), "rebooted": tf.TextSet(i.Rebooted), "upgraded": tf.TextSet(i.Upgraded),
		"kubernetes_upgraded": tf.TextSet(i.KubernetesUpgraded), "wiped": tf.TextSet(i.Wiped),
		"removed": tf.TextSet(i.Removed), "pods_replaced": tf.TextSet(i.PodsReplaced),
		"ends_cluster": types.BoolValue(i.EndsCluster),
	})
}
