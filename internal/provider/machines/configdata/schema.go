package configdata

import (
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	resource "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

func attributes() map[string]schema.Attribute {
	given := machines.ConfiguredAttributes()

	for name, text := range arguments {
		describe(given, name, text)
	}

	maps.Copy(given, map[string]resource.Attribute{
		"cluster": tf.RequiredObject("Handle of the cluster the machines join: `cluster` of `talosop_control_plane` or "+
			"`talosop_cluster`, or an object written by hand. Its secrets may be in `clusters` of the provider as those of "+
			"`talosop_worker` may; the configuration that is made of them is in state all the same.",
			clusterhandle.ObservedHandle()),
		"role": tf.OptionalString("What the machines do in their cluster, in the words of Talos: `worker` (the default) or "+
			"`controlplane`. Ordinary pods run on a control plane only with a patch that sets "+
			"`cluster.allowSchedulingOnControlPlanes`.", stringvalidator.OneOf(string(step.Worker), string(step.ControlPlane))),
		"allow_untested": tf.OptionalBool("Whether `talos_version` may be newer than " + machineset.NewestTalos + " " +
			"(default `false`)."),
		"config": tf.ComputedSecret("The configuration as Talos takes it. It holds secrets: that of a worker the tokens " +
			"that machines join with and the secret of discovery, that of a control plane the keys of all authorities as " +
			"well. State keeps it, and whoever can read the metadata of a VM can read its user data."),
		"redacted": tf.ComputedString("The configuration for people, with `(sensitive value)` in the place of secrets, of " +
			"what often carries them, and of all of a document that talosop does not know, as plans have it. A secret that a " +
			"patch puts where Talos expects none is shown."),
		"digest": tf.ComputedString("Digest of the configuration. The images of " +
			"Kubernetes and keys that can be turned over are no part of it."),
	})

	return tf.DataSourceAttributes(given)
}

// arguments are the texts of arguments that say more where machines follow them.
var arguments = map[string]string{
	"talos_version": "Talos version of the image that the machines boot from, such as `" + rollout.TalosExample +
		"`, with or without the `v`: " + machineset.SupportedTalos + "; a newer one needs `allow_untested`. It decides " +
		"what is valid, and the tag of the installer image.",
	"hostname": "Host name, for a configuration of one machine. Without it the configuration fixes none, so that many " +
		"machines can have it: the platform or DHCP names each of them, and where they do not, Talos makes a name of " +
		"the identity of the machine.",
	"install": "How Talos is installed by a machine that boots from an ISO or over the network: `disk` or " +
		"`disk_selector` is needed, unless a machine boots from a disk already.",
	"schematic": "Id or content (YAML) of an Image Factory schematic with system extensions and kernel arguments, for " +
		"the installer image.",
	"platform": "Platform of the installer image of a `schematic`, in the words of Talos, such as `nocloud` or `aws` " +
		"(default `metal`).",
	"system_volumes": "Volumes that Talos keeps its own data on: `STATE`, `EPHEMERAL`, and from Talos v1.14 `ETCD`, " +
		"`CRI`, `KUBELET` and `LOG`, else directories of `EPHEMERAL` ([guide](../guides/disks-and-security)).",
	"config_patches": "Patches of the configuration, after those of the cluster, for what has no attribute. " +
		machines.PatchFormat,
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
