package operations

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/operation"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// wipeAttributes are what a reset wipes.
func wipeAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"wipe": tf.OptionalStrings("The volumes: `EPHEMERAL`, `ETCD`, `CRI`, `KUBELET`, `LOG`, or a volume of the machine "+
			"configuration such as `u-data` (`r-`, `e-`, `s-` and `x-` for other kinds). Default: `EPHEMERAL`, or none with "+
			"`user_disks`. All others stay, with their data.",
			listvalidator.SizeAtLeast(1), listvalidator.UniqueValues(), listvalidator.ValueStringsAre(wipedVolume)),
		"user_disks": tf.OptionalStrings("Whole disks beside the system disk, such as `/dev/sdb`, by their paths in "+
			"`talosctl get disks`. Their partitions and user volumes are lost.",
			listvalidator.SizeAtLeast(1), listvalidator.UniqueValues(), listvalidator.ValueStringsAre(rollout.WipedDisk)),
	}
}

// wipedVolume accepts the volumes without which a machine rejoins its cluster.
var wipedVolume = tf.StringCheck{
	Allowed: "value must be the name of a volume, such as EPHEMERAL or u-data",
	Check: func(at path.Path, value string) diag.Diagnostic {
		if wipe.IsRuntimeVolume(value) || strings.TrimSpace(value) == "" { // which is refused everywhere
			return nil
		}

		return tf.Diagnostic(volumeNotWiped.At(tf.PathOf(at), finding.Args{"volume": value,
			"configuration": value == wipe.State || value == wipe.Meta}))
	},
}

// inPods refuses to wipe machines in pods: a container has no partitions and no disks.
func (a asked) inPods(diags *diag.Diagnostics) bool {
	mode, _ := a.cluster.Attributes()["mode"].(types.String)
	if a.kind.kind != operation.Reset || mode.ValueString() != clusterhandle.ContainerMode {
		return false
	}

	diags.Append(tf.Diagnostic(podsNotWiped.At(finding.Root("cluster").AtName("mode"), nil)))

	return true
}

// announce warns about the data that a planned reset wipes, and names what stays.
func (a asked) announce(diags *diag.Diagnostics) {
	if a.kind.kind != operation.Reset || a.machines.IsUnknown() || a.unknown() {
		return
	}

	selected := a.selected()
	diags.Append(tf.Diagnostic(volumesWiped.With(finding.Args{"machines": a.named(), "volumes": selected.Volumes(),
		"disks": selected.Disks(), "etcd": selected.LosesEtcd()})))
}
