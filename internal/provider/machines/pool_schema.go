package machines

import (
	"context"
	"maps"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/image/schematic"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// machineSetModel is the shared part of the models of resources with machines of one role.
type machineSetModel struct {
	CommonModel
	machinesModel

	TalosVersion types.String `tfsdk:"talos_version"`
}

// groupModel is the settings that machines share.
type groupModel struct {
	Install       types.Object `tfsdk:"install"`
	Schematic     types.String `tfsdk:"schematic"`
	Platform      types.String `tfsdk:"platform"`
	ConfigPatches types.List   `tfsdk:"config_patches"`

	settings.NodeModel
	SystemModel

	SystemVolumes types.Map `tfsdk:"system_volumes"`
}

// machinesModel is machines and the settings they share.
type machinesModel struct {
	groupModel

	Machines types.Map    `tfsdk:"machines"`
	Reset    types.Object `tfsdk:"reset"`

	// What there is in the place of Machines in containers.
	Replicas       types.Int64  `tfsdk:"replicas"`
	ReplicaPatches types.Map    `tfsdk:"replica_config_patches"`
	Pod            types.Object `tfsdk:"pod"`
}

// lifecycleModel is how every resource with machines treats them, and its plan for them.
type lifecycleModel struct {
	rollout.Changes

	ID                 types.String   `tfsdk:"id"`
	OwnerID            types.String   `tfsdk:"owner_id"`
	HostUID            types.String   `tfsdk:"host_uid"`
	SecretsDigest      types.String   `tfsdk:"secrets_digest"`
	OnDestroy          types.String   `tfsdk:"on_destroy"`
	OnIncomplete       types.String   `tfsdk:"on_incomplete"`
	DeletionProtection types.Bool     `tfsdk:"deletion_protection"`
	Phase              types.String   `tfsdk:"phase"`
	Operations         types.List     `tfsdk:"operations"`
	Impact             types.Object   `tfsdk:"impact"`
	Record             types.String   `tfsdk:"record"`
	Timeouts           timeouts.Value `tfsdk:"timeouts"`
}

// CommonModel is the shared part of the models of resources with several machines: lifecycleModel, and the observations
// of the machines.
type CommonModel struct {
	lifecycleModel
	observations

	// manifests is the attribute bootstrap_manifests_version of models that have one.
	manifests types.String
	// restored is the attributes restored_from and restored_at of models that have them.
	restored restored
	// others is the attribute observed_others of models that have one.
	others types.Map
}

// observations are the last observations of machines, by name. Versions have maps of their own, so that an upgrade is
// one line for each machine in a plan.
type observations struct {
	Observed   types.Map `tfsdk:"observed"`
	Talos      types.Map `tfsdk:"observed_talos_versions"`
	Kubernetes types.Map `tfsdk:"observed_kubernetes_versions"`
}

// The choices of on_destroy.
const (
	onDestroyReset    = "reset"
	onDestroyPreserve = "preserve"
)

// restored is the record of the snapshot that the etcd of a cluster started with. A snapshot is only restored while
// it is not the recorded one.
type restored struct {
	// From names it, and At is when the etcd of a machine started with it, by that machine's clock.
	From, At types.String
}

// poolAttributes are the attributes of every resource with machines. role names the machines in texts.
func poolAttributes(ctx context.Context, role string, protect bool) map[string]schema.Attribute {
	attributes := groupAttributes(role, "install")
	attributes["talos_version"] = talosVersionAttribute("the " + role + " machines run")

	maps.Copy(attributes, lifecycleAttributes(ctx, protectionAttribute(protect, protectsTheWhole)))

	return attributes
}

// lifecycleAttributes are those of CommonModel.
func lifecycleAttributes(ctx context.Context, protection schema.BoolAttribute) map[string]schema.Attribute {
	attributes := map[string]schema.Attribute{
		"id": schema.StringAttribute{
			Computed:            true,
			PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			MarkdownDescription: "A readable ID, for messages.",
		},
		"owner_id": schema.StringAttribute{
			Computed:      true,
			PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			MarkdownDescription: "Random ID of this resource in this state. The nodes of its machines carry it in the " +
				"annotation `talosop.dev/owner`, authenticated with the secrets. The provider does not change nodes of another " +
				"resource: see the [guide](../guides/renames-and-moves).",
		},
		"host_uid": schema.StringAttribute{
			Computed:      true,
			PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			MarkdownDescription: clusterhandle.ContainersOnly + "UID of `kube-system` of the host cluster of the machines. " +
				"The provider changes nothing on another host cluster.",
		},
		"secrets_digest": schema.StringAttribute{
			Computed:      true,
			PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			MarkdownDescription: "Digest of the secrets in the provider block, without the parts that can change. The " +
				"provider refuses other secrets.",
		},
		"deletion_protection": protection,
		"timeouts":            tf.MachineTimeouts(ctx),
	}

	maps.Copy(attributes, behaviorAttributes())
	maps.Copy(attributes, rollout.Attributes())
	maps.Copy(attributes, observationAttributes())

	return attributes
}

func talosVersionAttribute(of string) schema.StringAttribute {
	return schema.StringAttribute{
		Required:      true,
		PlanModifiers: []planmodifier.String{tf.KeepVersion()},
		MarkdownDescription: "Talos version " + of + ", such as `" + machineconfig.CurrentTalos + "`, with or without the " +
			"`v`. Supported: " + machineset.SupportedTalos + "; a newer one needs `allow_untested`. A change upgrades running " +
			"machines one minor version at a time: each is drained and rebooted, control planes one at a time.",
	}
}

// platformText describes platform, with a default and without one.
const platformText = tf.MetalOnly + "Talos platform of the installer image of a `schematic`, such as `nocloud` or " +
	"`aws` (default `metal`)." + imageChange

// imageChange says what another installer image does.
const imageChange = " A change upgrades machines whose image talosop installed to the new image of the same Talos; " +
	"others get it with their next upgrade."

// groupAttributes are those of machinesModel. install locates that of the group.
func groupAttributes(role, install string) map[string]schema.Attribute {
	attributes := map[string]schema.Attribute{
		"machines": machinesAttribute(role, install),
		"install": installAttribute("the "+role+" machines",
			"; a machine's own `install` takes precedence"),
		"schematic": schema.StringAttribute{
			Optional: true,
			PlanModifiers: []planmodifier.String{
				tf.KeepSpelling(schematic.Same, "A schematic and its ID are the same.")},
			MarkdownDescription: tf.MetalOnly + "ID or content (YAML) of an Image Factory schematic with system extensions " +
				"and kernel arguments (default: any, until the next upgrade installs plain Talos). A change upgrades running " +
				"machines to the same Talos version with the new schematic.",
		},
		"platform": schema.StringAttribute{
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(clusterhandle.MetalMode),
			MarkdownDescription: platformText,
		},
		"config_patches": schema.ListAttribute{
			Validators:  []validator.List{tf.MayBeBlank{}},
			Optional:    true,
			Computed:    true,
			Default:     tf.NoTexts(),
			ElementType: types.StringType,
			MarkdownDescription: "Patches of the configuration of the " + role + " machines of this resource, applied " +
				"between those of the cluster and of a machine. " + PatchFormat + patchChange,
		},
	}

	attributes["system_volumes"] = systemVolumes("the "+role+" machines", patchChange)
	attributes["reset"] = resetAttribute()
	maps.Copy(attributes, systemAttributes(patchChange, imageChange))
	maps.Copy(attributes, settings.Attributes(settings.Workers))
	maps.Copy(attributes, replicaAttributes(role))

	return attributes
}

// behaviorAttributes decide how the resource treats its machines; none of them is part of a configuration.
func behaviorAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"on_destroy": schema.StringAttribute{
			Optional:   true,
			Computed:   true,
			Default:    stringdefault.StaticString(onDestroyReset),
			Validators: []validator.String{stringvalidator.OneOf(onDestroyReset, onDestroyPreserve)},
			MarkdownDescription: "What destroying the resource does to its machines: `reset` (the default) wipes them and " +
				"reboots them into maintenance mode; `preserve` only removes them from state. Workers of a remaining cluster " +
				"are reset all at once; to respect `max_unavailable`, first remove them from `machines`." + tf.TerraformOnly,
		},
		"on_incomplete": tf.OnIncomplete("After an unfinished create, `warn` stores the resource with its `phase` and " +
			"the next apply continues; `error` taints it, and without `untaint` the next apply **resets the machines**." +
			tf.TerraformOnly),
	}
}

// observationAttributes are what talosop reports.
func observationAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"phase": tf.ComputedString("Progress of the machines: `Provisioning`, `Bootstrapping`, `Joining`, `Ready` or " +
			"`Degraded`. `Degraded` means that a machine, node, etcd, the Kubernetes API or its endpoint fails; the next " +
			"apply repairs it or waits. Check `self.phase == \"Ready\"` in a postcondition."),
		"operations": tf.ComputedStrings("What the apply of this plan does to machines, in order. Empty after the next " +
			"refresh; after a failed update, the remaining operations."),
		"impact": ImpactAttribute(),
		"observed": tf.ComputedObjectMap("Values from the last observation of each machine, by name. A machine that does "+
			"not answer keeps its values. One that was never reached is absent.", map[string]schema.Attribute{
			"address":   tf.ComputedString("Address at which the provider reached the machine."),
			"uuid":      tf.ComputedString("Hardware UUID (SMBIOS)."),
			"stage":     tf.ComputedString("Talos stage: `maintenance`, `booting`, `running`, …"),
			"ready":     tf.ComputedBool("Whether Talos reports the machine as ready."),
			"node_name": tf.ComputedString("Name of the Kubernetes node."),
			"drift": tf.ComputedStrings("Differences from what was last applied, which the next apply repairs. It does not " +
				"change lines that begin with `host cluster, left as it is`. It waits for lines that begin with `not ready` or " +
				"`etcd is not healthy`."),
		}),
		talosVersions: tf.ComputedStringMap("Talos version of each machine in the last observation, by name."),
		kubernetesVersions: tf.ComputedStringMap("Kubernetes version of each node in the last observation, by name of " +
			"the machine: the version of its kubelet."),
		"record": tf.ComputedSecret("Other data about the machines that talosop needs for its next plan; its format may " +
			"change in any version. To inspect machines, use `talosop_machine_info` and `talosop_cluster_health`."),
	}
}

// The attributes with versions.
const (
	talosVersions      = "observed_talos_versions"
	kubernetesVersions = "observed_kubernetes_versions"
)

// ObservedType is the type of the elements of observed. It is computed once, because every machine needs it.
var ObservedType = sync.OnceValue(func() types.ObjectType {
	attribute, ok := observationAttributes()["observed"].(schema.MapNestedAttribute)
	if !ok {
		panic("provider: observed is not a nested map")
	}

	return tf.ObjectOf(attribute.NestedObject.Attributes)
})
