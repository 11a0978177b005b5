package machines

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
)

// clusterResourceAttributes are those of ClusterModel.
func clusterResourceAttributes(ctx context.Context) map[string]schema.Attribute {
	attributes := lifeAttributes(ctx, protectionAttribute(true, protectsTheWhole))
	maps.Copy(attributes, settingsAttributes())

	attributes["talos_version"] = talosVersionAttribute(
		"the machines of the cluster run, unless a pool of workers has its own")
	attributes["control_plane"] = schema.SingleNestedAttribute{
		Required: true,
		MarkdownDescription: "The control plane: its machines, and the settings they share. In `observed` and `operations` " +
			"they go by their names.",
		Attributes: blockAttributes("control-plane", "`control_plane`"),
	}
	attributes["workers"] = workersAttribute()

	return attributes
}

// workersAttribute is the pools of workers.
func workersAttribute() schema.MapNestedAttribute {
	attributes := blockAttributes("worker", "the pool")

	version := talosVersionAttribute("the machines of the pool run")
	version.Required, version.Optional = false, true
	version.MarkdownDescription += " Default: that of the cluster."
	attributes["talos_version"] = version
	attributes["max_unavailable"] = maxUnavailableAttribute()

	return schema.MapNestedAttribute{
		Optional: true,
		Validators: []validator.Map{
			mapvalidator.KeysAre(stringvalidator.RegexMatches(machineName,
				"the name of a pool has at most 63 letters, digits, dots, dashes and underscores, and begins and ends with a "+
					"letter or digit")),
		},
		MarkdownDescription: "The pools of workers, by a name of your choice. In `observed` and `operations` their " +
			"machines go by the names of pool and machine, as in `batch/w-1`. A pool that is taken out leaves the cluster " +
			"machine by machine; one that only gets another name keeps its machines, but for those in containers, which are " +
			"called by it: new ones are made, and the old ones removed.",
		NestedObject: schema.NestedAttributeObject{Attributes: attributes},
	}
}

// blockAttributes are those of machinesModel inside of talosop_cluster. of names the
// block in texts.
func blockAttributes(role, of string) map[string]schema.Attribute {
	attributes := groupAttributes(role)

	attributes["platform"] = schema.StringAttribute{
		Optional: true,
		MarkdownDescription: "Platform of the installer image of a `schematic`, in the words of Talos, such as `metal`, " +
			"`nocloud` or `aws`. A change upgrades machines that talosop installed or upgraded (see `installer` in " +
			"`observed`) to the same Talos from the other image; others get it with their next upgrade. Default: " +
			"`metal`." + clusterhandle.JoinOnly,
	}
	attributes["config_patches"] = schema.ListAttribute{
		Optional:    true,
		ElementType: types.StringType,
		MarkdownDescription: "Patches of the configuration of the machines of " + of +
			"; after `cluster_config_patches`, before those of a " +
			"machine. " + patchFormat + patchChange,
	}

	return attributes
}
