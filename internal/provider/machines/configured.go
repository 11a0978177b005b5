package machines

import (
	"context"
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// ConfiguredModel is the configuration settings of groups and single machines.
type ConfiguredModel struct {
	groupModel

	TalosVersion types.String `tfsdk:"talos_version"`
	Hostname     types.String `tfsdk:"hostname"`
}

// ConfiguredAttributes are those of ConfiguredModel, without the effects of a change: a change reaches no machine.
func ConfiguredAttributes() map[string]schema.Attribute {
	attributes := groupAttributes("", "install")
	maps.Copy(attributes, settings.Attributes(settings.Configured))
	attributes["talos_version"], attributes["hostname"] = talosVersionAttribute(""), hostnameAttribute("")

	for _, name := range []string{"machines", "replicas", "replica_config_patches", "pod", "reset"} {
		delete(attributes, name)
	}

	return tf.WithDescriptions(attributes, strings.NewReplacer(patchChange, "", imageChange, "", tf.AppliedLive, "",
		clusterhandle.JoinOnly, "", tf.MetalOnly, "").Replace)
}

// MachineSet reads the model as the only machine of a set, without an address. Without a host name its configuration
// has none.
func (m ConfiguredModel) MachineSet(
	ctx context.Context, handle clusterhandle.HandleModel, role step.Role,
) (machineset.Set, diag.Diagnostics) {
	g := writeGroup(machineset.Group{Role: role, VersionAt: finding.Root("talos_version")},
		unsetReplicas(machinesModel{groupModel: m.groupModel}), m.TalosVersion, types.StringNull())

	p, diags := machineSetOf(ctx, handle, types.ObjectNull(clusterhandle.WorkerHostType()), g)
	p.InHandle, p.Single, p.Joins = true, true, true
	p.Settings.FindsLinks = false // it asks no machine

	r, one := &tf.Reader{}, machineModel{Hostname: m.Hostname}
	_, ownImage := g.installOf(r, one)
	p.Machines[""] = machineset.Machine{Group: g.Group, OwnHostname: true, OwnImage: ownImage,
		Config: g.machine(r, "", one)}
	p.Unknown.Note(machineset.UnknownConfiguration, r.Unknown)

	return p.Set, append(diags, r.Diags...)
}
