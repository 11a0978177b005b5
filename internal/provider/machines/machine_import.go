package machines

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

func (r *machineResource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	r.importState(ctx, req, resp, r.readOff)
}

// readOff reads a machine from itself, and its cluster from the control planes.
func (r *machineResource) readOff(
	ctx context.Context, request clusterimport.Request, file clusterimport.SecretsFile,
) (OneMachineModel, map[string]clusterimport.Recognized, diag.Diagnostics) {
	planes, diags := clusterimport.Recognize(ctx, r.ProviderData, request.ControlPlane, file, step.ControlPlane)
	found, more := request.Recognize(ctx, r.ProviderData, request.Machines, file, request.RoleOfMachine())
	diags.Append(more...)

	if diags.HasError() {
		return OneMachineModel{}, nil, diags
	}

	model, diags := oneMachineFrom(ctx, request, file, planes, found)

	return model, found, diags
}

// oneMachineFrom is the model of a machine as it describes itself, in the cluster that its control planes describe.
// Which of them bootstrapped etcd is unknown, and no longer matters.
func oneMachineFrom(
	ctx context.Context, request clusterimport.Request, file clusterimport.SecretsFile, planes,
	found map[string]clusterimport.Recognized,
) (OneMachineModel, diag.Diagnostics) {
	var model OneMachineModel

	if len(planes) == 0 {
		planes = found // the state of a moved worker does not contain them
	}

	of, _, err := clusterimport.SettingsOfAll(planes, file)
	if err != nil {
		return model, clusterimport.ImportFailed("read the configurations of the control planes", err, "")
	}

	_, machines, err := clusterimport.SettingsOfAll(found, file)
	if err != nil {
		return model, clusterimport.ImportFailed("read the configuration", err, "")
	}

	shared, diags := poolFrom(ctx, machineset.Group{}, machines, found, false)
	name := slices.Sorted(maps.Keys(found))[0]

	one, _ := tf.Object[machineModel](ctx, &tf.Reader{}, objectIn(shared.Machines, name))

	model = OneMachineModel{
		machineModel: one, Name: types.StringValue(name), Role: types.StringValue(string(request.RoleOfMachine())),
		Bootstrap:    types.BoolNull(),
		TalosVersion: shared.TalosVersion, Schematic: shared.Schematic, Platform: shared.Platform,
	}
	model.Install, model.ConfigPatches = shared.Install, shared.ConfigPatches
	model.SystemModel, model.SystemVolumes = shared.SystemModel, shared.SystemVolumes
	settings.Write(commonSettings(machines), &model.MachineModel)
	model.setCommon(shared.CommonModel)

	handle, more := clusterimport.HandleSeen(ctx, of, file, planes)
	model.Cluster = handle

	return model, append(diags, more...)
}

// objectIn is the value of a name in a map of objects; null without one.
func objectIn(objects types.Map, name string) types.Object {
	value, ok := objects.Elements()[name].(types.Object)
	if !ok {
		return types.ObjectNull(machineType())
	}

	return value
}
