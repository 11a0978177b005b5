package machines

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// resetModel is how a machine is reset that leaves.
type resetModel struct {
	Wipe      types.List `tfsdk:"wipe"`
	UserDisks types.List `tfsdk:"user_disks"`
	Graceful  types.Bool `tfsdk:"graceful"`
	Reboot    types.Bool `tfsdk:"reboot"`
}

// resetAttribute are the options of a reset.
func resetAttribute() schema.SingleNestedAttribute {
	return tf.OptionalObject(tf.MetalOnly+"The reset of machines that leave, with the options of `talosctl reset`, as "+
		"last applied ([guide](../guides/replacing-machines))."+tf.TerraformOnly, map[string]schema.Attribute{
		"wipe": tf.OptionalStrings("Volumes to wipe: `STATE` (required), `EPHEMERAL` (required on control planes), `META`, "+
			"user volumes such as `u-data`; or `SYSTEM_DISK` alone. Default: `STATE` and `EPHEMERAL`.",
			listvalidator.SizeAtLeast(1), listvalidator.UniqueValues()),
		"user_disks": tf.OptionalStrings("Disks beside the system disk to wipe, such as `/dev/sdb`.",
			listvalidator.SizeAtLeast(1), listvalidator.UniqueValues(), listvalidator.ValueStringsAre(rollout.WipedDisk)),
		"graceful": tf.OptionalBool("Whether the node is drained first, as `drain` says (default `true`). Control planes " +
			"leave etcd in any case."),
		"reboot": tf.OptionalBool("Whether the machine reboots (default `true`) or switches off."),
	})
}

// resetAgain is reset of a machine in a group; where locates that of the group.
func resetAgain(where string) schema.SingleNestedAttribute {
	again := resetAttribute()
	again.MarkdownDescription = "The reset of this machine, as in `" + where + "`, which it replaces."
	again.Attributes = tf.AsThere(again.Attributes)

	return again
}

// resetType is the type of reset.
func resetType() map[string]attr.Type { return tf.ObjectOf(resetAttribute().Attributes).AttrTypes }
