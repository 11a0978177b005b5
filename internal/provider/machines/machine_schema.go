package machines

import (
	"context"
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// protectsItsCluster is what deletion_protection guards where a resource is one machine.
const protectsItsCluster = "Whether the provider refuses to remove or replace this machine if that ends its " +
	"cluster, until you apply `false`. It covers the last control plane, all control planes in one plan, and one with " +
	"etcd and Kubernetes API silent for two minutes"

// oneMachineAttributes are those of OneMachineModel: those of machines in maps, those of groups, and those of a
// single machine only.
func oneMachineAttributes(ctx context.Context) map[string]schema.Attribute {
	attributes := lifecycleAttributes(ctx, protectionAttribute(true, protectsItsCluster))
	shared := groupAttributes("the", "install")

	maps.Copy(attributes, machinesAttribute("", "install").NestedObject.Attributes)
	maps.Copy(attributes, systemAttributes(patchChange, imageChange))
	maps.Copy(attributes, settings.Attributes(settings.OneMachine))

	attributes["address"] = addressOfOne(attributes["address"])
	attributes["hostname"] = hostnameAttribute("`name`")
	attributes["install"] = installAttribute("the machine", "")
	attributes["schematic"], attributes["platform"] = shared["schematic"], shared["platform"]
	attributes["system_volumes"] = systemVolumes("the machine", patchChange)
	attributes["reset"] = resetAttribute()
	attributes["talos_version"] = talosVersionAttribute("the machine runs")
	attributes["config_patches"] = configPatchesOfOne(shared["config_patches"])
	attributes["observed"] = observedOne()
	attributes["observed_talos_version"] = tf.ComputedString("Talos version in the last observation of the machine.")
	attributes["observed_kubernetes_version"] = tf.ComputedString("Kubernetes version in the last observation of the " +
		"machine: the version of its kubelet.")

	delete(attributes, talosVersions)
	delete(attributes, kubernetesVersions)

	attributes["bootstrap_manifests_version"] = rollout.ManifestsAttribute()

	maps.Copy(attributes, map[string]schema.Attribute{
		"allow_bootstrap": allowBootstrapAttribute(),
		"cluster": schema.SingleNestedAttribute{
			Required:      true,
			PlanModifiers: []planmodifier.Object{clusterhandle.KeepHandle("talos_version", "phase")},
			MarkdownDescription: "Handle of the cluster that the machine joins: `cluster` of `talosop_control_plane` or " +
				"`talosop_cluster`, or an object that you write with the `bundle` of `talosop_secrets`. For a control plane, " +
				"`talos_endpoints` must list all control planes. The provider asks them before etcd starts on the machine, and " +
				"before it leaves.",
			Attributes: clusterhandle.JoinHandle(clusterhandle.ReplacesMachine),
		},
		"role": schema.StringAttribute{
			Required:      true,
			Validators:    []validator.String{stringvalidator.OneOf(string(step.ControlPlane), string(step.Worker))},
			PlanModifiers: []planmodifier.String{tf.ReplaceOnChange()},
			MarkdownDescription: "Role of the machine in its cluster: `controlplane` or `worker`. Ordinary pods run on a " +
				"control plane only with a patch that sets `cluster.allowSchedulingOnControlPlanes`." +
				clusterhandle.ReplacesMachine,
		},
		"name": tf.RequiredString("Name of the machine in plans, messages and `id`, unique in its cluster; also the "+
			"default of `hostname`. A machine that has joined keeps its hostname when the name changes."+
			tf.TerraformOnly, stringvalidator.RegexMatches(machineName,
			"a machine name has at most 63 letters, digits, dots, dashes and underscores, and begins and ends with a letter "+
				"or digit")),
		"bootstrap": tf.OptionalBool("Whether this control plane bootstraps etcd if the cluster never had one (default " +
			"`false`): set it on exactly one `talosop_machine` of a cluster. Needs all control planes in `talos_endpoints` " +
			"of `cluster`: none of them may hold etcd data." + tf.TerraformOnly),
	})

	return attributes
}

// observedOne is observed without its map.
func observedOne() schema.SingleNestedAttribute {
	all, ok := observationAttributes()["observed"].(schema.MapNestedAttribute)
	if !ok {
		panic("provider: observed is not a nested map")
	}

	return schema.SingleNestedAttribute{
		Computed: true,
		MarkdownDescription: "Values from the last observation of the machine. They stay while the machine does not " +
			"answer. Null if the provider never reached it.",
		Attributes: all.NestedObject.Attributes,
	}
}

// addressOfOne is the address of the machine, which is not in an object that may be unknown.
func addressOfOne(shared schema.Attribute) schema.Attribute {
	address, ok := shared.(schema.StringAttribute)
	if !ok {
		panic("provider: address is not a text")
	}

	address.Required, address.Optional = true, false
	address.MarkdownDescription = strings.TrimPrefix(address.MarkdownDescription, "Required: ")

	return address
}

// configPatchesOfOne are the patches of the machine, empty by default like those of groups.
func configPatchesOfOne(shared schema.Attribute) schema.Attribute {
	patches, ok := shared.(schema.ListAttribute)
	if !ok {
		panic("provider: config_patches is not a list")
	}

	patches.MarkdownDescription = "Patches of the machine configuration, applied after those of the cluster. " +
		PatchFormat + patchChange

	return patches
}
