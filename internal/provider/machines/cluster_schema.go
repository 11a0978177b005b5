package machines

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/talosop/terraform-provider-talosop/internal/provider/healthchecks"
	"github.com/talosop/terraform-provider-talosop/internal/provider/hooks"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// clusterResourceAttributes are those of ClusterModel.
func clusterResourceAttributes(ctx context.Context) map[string]schema.Attribute {
	attributes := lifecycleAttributes(ctx, protectionAttribute(true, protectsTheWhole))
	maps.Copy(attributes, settingsAttributes())
	maps.Copy(attributes, settings.Attributes(settings.Cluster))

	attributes["talos_version"] = talosVersionAttribute(
		"the machines of the cluster run, unless a pool of workers sets another")
	attributes["control_plane"] = tf.RequiredObject("The control plane: its machines and the settings they share. "+
		"`observed` and `operations` refer to these machines by name.", planesAttributes())
	attributes["workers"] = workersAttribute()
	attributes["upgrade"] = rollout.UpgradeAttribute()
	attributes["health_checks"] = healthchecks.AttributeAsIn("worker", rollout.PositiveDuration)
	attributes["hooks"] = hooks.AttributeAsIn("worker", rollout.PositiveDuration)

	return attributes
}

// planesAttributes are those of planesModel.
func planesAttributes() map[string]schema.Attribute {
	attributes := blockAttributes("control-plane", "`control_plane`")
	maps.Copy(attributes, settings.Attributes(settings.ControlPlaneBlock))

	return attributes
}

// workersAttribute is the pools of workers.
func workersAttribute() schema.MapNestedAttribute {
	attributes := tf.AsIn("control_plane", blockAttributes("worker", "the pool"))

	version := talosVersionAttribute("")
	version.Required, version.Optional = false, true
	version.MarkdownDescription = "Talos version that the machines of the pool run. Default: the version of the " +
		"cluster. A change upgrades these machines, as `talos_version` of the cluster does."
	attributes["talos_version"] = version
	attributes["max_unavailable"] = rollout.MaxUnavailable()

	return schema.MapNestedAttribute{
		Optional: true,
		Validators: []validator.Map{
			mapvalidator.KeysAre(stringvalidator.RegexMatches(machineName,
				"the name of a pool has at most 63 letters, digits, dots, dashes and underscores, and begins and ends with a "+
					"letter or digit")),
		},
		MarkdownDescription: "The pools of workers, by a name of your choice. A pool that you remove leaves the cluster " +
			"machine by machine. A renamed pool keeps its machines on metal; containers are recreated.",
		NestedObject: schema.NestedAttributeObject{Attributes: attributes},
	}
}

// blockAttributes are those of machinesModel inside talosop_cluster. of names the block in texts.
func blockAttributes(role, of string) map[string]schema.Attribute {
	attributes := groupAttributes(role, "control_plane.install")

	attributes["platform"] = tf.OptionalString(platformText)
	attributes["config_patches"] = tf.OptionalStrings("Patches of the configuration of the machines of "+of+", in "+
		"the format of `cluster_config_patches` and applied after those.", tf.MayBeBlank{})

	return attributes
}
