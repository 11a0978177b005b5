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
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/system"
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
	system.Model

	SystemVolumes types.Map `tfsdk:"system_volumes"`
}

// machinesModel is machines and the settings they share.
type machinesModel struct {
	groupModel

	Machines types.Map `tfsdk:"machines"`

	// What there is in the place of Machines in containers.
	Replicas       types.Int64  `tfsdk:"replicas"`
	ReplicaPatches types.Map    `tfsdk:"replica_config_patches"`
	Pod            types.Object `tfsdk:"pod"`
}

// lifeModel is how every resource with machines treats them, and its plan for them.
type lifeModel struct {
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

// CommonModel is the shared part of the models of resources with several machines: lifeModel, and the observations
// of the machines.
type CommonModel struct {
	lifeModel

	Observed types.Map `tfsdk:"observed"`

	// manifests is the attribute bootstrap_manifests_version of models that have one.
	manifests types.String
	// restored is the attributes restored_from and restored_at of models that have them.
	restored restored
	// others is the attribute observed_others of models that have one.
	others types.Map
}

// The choices of on_destroy.
const (
	onDestroyReset    = "reset"
	onDestroyPreserve = "preserve"
)

// poolAttributes are the attributes of every resource with machines. role names the machines in texts.
func poolAttributes(ctx context.Context, role string, protect bool) map[string]schema.Attribute {
	attributes := groupAttributes(role, "install")
	attributes["talos_version"] = talosVersionAttribute("the " + role + " machines run")

	maps.Copy(attributes, lifeAttributes(ctx, protectionAttribute(protect, protectsTheWhole)))

	return attributes
}

// lifeAttributes are those of CommonModel.
func lifeAttributes(ctx context.Context, protection schema.BoolAttribute) map[string]schema.Attribute {
	attributes := map[string]schema.Attribute{
		"id": schema.StringAttribute{
			Computed:            true,
			PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			MarkdownDescription: "A readable id, for messages.",
		},
		"owner_id": schema.StringAttribute{
			Computed:      true,
			PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			MarkdownDescription: "Random id of this resource in this state, on the nodes of its machines (annotation " +
				"`talosop.dev/owner`, authenticated with the secrets). Those of another resource are left alone: see the " +
				"[guide](../guides/renames-and-moves).",
		},
		"host_uid": schema.StringAttribute{
			Computed:      true,
			PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			MarkdownDescription: clusterhandle.ContainersOnly + "UID of `kube-system` of the host cluster that has the " +
				"machines; nothing is done on another.",
		},
		"secrets_digest": schema.StringAttribute{
			Computed:            true,
			PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			MarkdownDescription: "Digest of what never changes of secrets in the provider block; others are refused.",
		},
		"deletion_protection": protection,
		"timeouts":            tf.MachineTimeouts(ctx),
	}

	maps.Copy(attributes, behaviourAttributes())
	maps.Copy(attributes, rollout.Attributes())
	maps.Copy(attributes, observationAttributes())

	return attributes
}

func talosVersionAttribute(of string) schema.StringAttribute {
	return schema.StringAttribute{
		Required:      true,
		PlanModifiers: []planmodifier.String{tf.KeepVersion()},
		MarkdownDescription: "Talos version " + of + ", such as `" + rollout.TalosExample + "`, with or without the " +
			"`v`: " + machineset.SupportedTalos + "; a newer one needs `allow_untested`. A change upgrades the machines " +
			"that run, one minor version after the other, each drained first and rebooted; the control planes one at a time.",
	}
}

// platformText describes platform, with a default and without one.
const platformText = tf.MetalOnly + "Platform of the installer image of a `schematic`, in the words of " +
	"Talos, such as `nocloud` or `aws` (default `metal`)." + imageChange

// imageChange says what another installer image does.
const imageChange = " A change upgrades machines that talosop installed or upgraded to the same Talos from the other " +
	"image; others get it with their next upgrade."

// groupAttributes are those of machinesModel. install locates that of the group.
func groupAttributes(role, install string) map[string]schema.Attribute {
	attributes := map[string]schema.Attribute{
		"machines": machinesAttribute(role, install),
		"install": installAttribute("the "+role+" machines",
			"; a machine's own `install` goes before this"),
		"schematic": schema.StringAttribute{
			Optional: true,
			PlanModifiers: []planmodifier.String{
				tf.KeepSpelling(schematic.Same, "A schematic and its id are the same one.")},
			MarkdownDescription: tf.MetalOnly + "Id or content (YAML) of an Image Factory schematic " +
				"with system extensions and kernel arguments; without it any is right until the next upgrade, which installs " +
				"plain Talos. A change upgrades machines that run to the same Talos with the new schematic.",
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
			MarkdownDescription: "Patches of the configuration of the " + role + " machines of this resource, after " +
				"those of the cluster and before those of a machine. " + PatchFormat + patchChange,
		},
	}

	attributes["system_volumes"] = system.Volumes("the "+role+" machines", patchChange)
	maps.Copy(attributes, system.Attributes(patchChange, imageChange))
	maps.Copy(attributes, settings.Attributes(settings.Workers))
	maps.Copy(attributes, replicaAttributes(role))

	return attributes
}

// behaviourAttributes decide how the resource treats its machines; none of them is part of a configuration.
func behaviourAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"on_destroy": schema.StringAttribute{
			Optional:   true,
			Computed:   true,
			Default:    stringdefault.StaticString(onDestroyReset),
			Validators: []validator.String{stringvalidator.OneOf(onDestroyReset, onDestroyPreserve)},
			MarkdownDescription: "What destroying the resource does to its machines: `reset` (the default) wipes them " +
				"and reboots them into maintenance mode, `preserve` leaves them running and forgets them. Workers of a cluster " +
				"that lives on are reset all at once; to have them leave within `max_unavailable`, take them out of `machines` " +
				"first." + tf.TerraformOnly,
		},
		"on_incomplete": tf.OnIncomplete("What a create that began and did not finish does: `warn` stores the " +
			"resource with its `phase`, and the next apply goes on; `error` taints it: unless `untaint`ed, the next apply " +
			"**resets the machines**." + tf.TerraformOnly),
	}
}

// observationAttributes are what talosop reports.
func observationAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"phase": tf.ComputedString("How far the machines have come: `Provisioning`, `Bootstrapping`, `Joining`, `Ready`, " +
			"or `Degraded` when a machine, its node, etcd, the Kubernetes API or its endpoint does not work, which the next " +
			"apply repairs or waits for. Check `self.phase == \"Ready\"` in a postcondition."),
		"operations": tf.ComputedStrings("What the apply of this plan does to machines, in order. Empty once the next " +
			"refresh has seen them; after an update that failed, what remains."),
		"impact": impactAttribute(),
		"observed": tf.ComputedObjectMap("What was last observed of each machine, by its name. One that does not answer "+
			"keeps its values; one that was never reached is absent.", map[string]schema.Attribute{
			"address":            tf.ComputedString("Address at which the machine was reached."),
			"uuid":               tf.ComputedString("Hardware UUID (SMBIOS)."),
			"stage":              tf.ComputedString("Stage in the words of Talos: `maintenance`, `booting`, `running`, …"),
			"ready":              tf.ComputedBool("Whether Talos reports it ready."),
			"talos_version":      tf.ComputedString("Talos version that runs."),
			"kubernetes_version": tf.ComputedString("Kubernetes version of the node, which is that of its kubelet."),
			"node_name":          tf.ComputedString("Name of the Kubernetes node."),
			"drift": tf.ComputedStrings("How it differs from what was applied last; the next apply puts it right, but for " +
				"what begins with `host cluster, left as it is`, and waits for what begins with `not ready` or `etcd is not " +
				"healthy`."),
		}),
		"record": tf.ComputedSecret("What else talosop remembers of the machines, for its next plan; its form may change " +
			"in any version. To look at machines there are `talosop_machine_info` and `talosop_cluster_health`."),
	}
}

// ObservedType is the type of the elements of observed. It is computed once, because every machine needs it.
var ObservedType = sync.OnceValue(func() types.ObjectType {
	attribute, ok := observationAttributes()["observed"].(schema.MapNestedAttribute)
	if !ok {
		panic("provider: observed is not a nested map")
	}

	return tf.ObjectOf(attribute.NestedObject.Attributes)
})
