package configdata

import (
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	resource "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

func attributes() map[string]resource.Attribute {
	given := machines.ConfiguredAttributes()

	for name, text := range arguments {
		describe(given, name, text)
	}

	maps.Copy(given, map[string]resource.Attribute{
		"cluster": tf.RequiredObject("Handle of the cluster that the machines join: `cluster` of `talosop_control_plane` "+
			"or `talosop_cluster`, or an object that you write. Its secrets can be in `clusters` of the provider, as for "+
			"`talosop_worker`. The resulting configuration is stored in state in either case.",
			clusterhandle.ObservedHandle()),
		"role": tf.OptionalString("Role of the machines in the cluster: `worker` (the default) or `controlplane`. "+
			"Ordinary pods run on a control plane only with a patch that sets "+
			"`cluster.allowSchedulingOnControlPlanes`.", stringvalidator.OneOf(string(step.Worker), string(step.ControlPlane))),
		"allow_untested": tf.OptionalBool("Whether `talos_version` may be newer than " + machineset.NewestTalos + " " +
			"(default `false`)."),
		"config": tf.ComputedSecret("The configuration for Talos, with secrets: for workers, join tokens and the " +
			"discovery secret; for control planes, also all authority keys. State stores it. A client that can read the " +
			"metadata of a VM can read its user data."),
		"redacted": tf.ComputedString("The configuration for display, as plans show it. `(sensitive value)` replaces " +
			"secrets, fields that often hold secrets, and documents that talosop does not know. It shows a secret that a " +
			"patch puts in any other field."),
		"digest": tf.ComputedString("Digest of the configuration, without the Kubernetes images and the keys that can be " +
			"rotated."),
	})

	return given
}

// arguments are the texts of arguments that say more where machines follow them.
var arguments = map[string]string{
	"talos_version": "Talos version of the image that the machines boot from, such as `" +
		machineconfig.CurrentTalos + "`, with or without the `v`: " + machineset.SupportedTalos + "; a newer one needs " +
		"`allow_untested`. It decides which fields are valid, and sets the tag of the installer image.",
	"hostname": "Hostname, for the configuration of one machine. Without it, many machines can use the configuration: " +
		"the platform or DHCP names each one. If neither does, Talos derives a name from the machine identity.",
	"install": "Installation from an ISO or the network: needs `disk` or `disk_selector`, unless the machine boots " +
		"from a disk.",
	"schematic": "ID or content (YAML) of an Image Factory schematic with system extensions and kernel arguments, for " +
		"the installer image.",
	"platform": "Talos platform of the installer image of a `schematic`, such as `nocloud` or `aws` (default `metal`).",
	"system_volumes": "Volumes for the data of Talos: `STATE` and `EPHEMERAL`, and from Talos v1.14 `ETCD`, `CRI`, " +
		"`KUBELET` and `LOG`. Without them, the latter are directories of `EPHEMERAL` " +
		"([guide](../guides/disks-and-security)).",
	"config_patches": "Patches of the configuration, applied after those of the cluster, for settings without an " +
		"attribute. " + machines.PatchFormat,
}

// describe gives an argument its own text.
func describe(attributes map[string]resource.Attribute, name, text string) {
	switch a := attributes[name].(type) {
	case resource.StringAttribute:
		a.MarkdownDescription = text
		attributes[name] = a
	case resource.ListAttribute:
		a.MarkdownDescription = text
		attributes[name] = a
	case resource.SingleNestedAttribute:
		a.MarkdownDescription = text
		attributes[name] = a
	case resource.MapNestedAttribute:
		a.MarkdownDescription = text
		attributes[name] = a
	default:
		panic(tf.Unconverted(name, a))
	}
}

// model is the data source talosop_machine_config.
type model struct {
	machines.ConfiguredModel

	Cluster       types.Object `tfsdk:"cluster"`
	Role          types.String `tfsdk:"role"`
	AllowUntested types.Bool   `tfsdk:"allow_untested"`
	Config        types.String `tfsdk:"config"`
	Redacted      types.String `tfsdk:"redacted"`
	Digest        types.String `tfsdk:"digest"`
}
