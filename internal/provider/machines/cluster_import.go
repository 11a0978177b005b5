package machines

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// clusterFrom is the model of a whole cluster as its machines describe it.
func clusterFrom(
	ctx context.Context, file clusterimport.SecretsFile, planes map[string]clusterimport.Recognised,
	pools map[string]map[string]clusterimport.Recognised,
) (ClusterModel, diag.Diagnostics) {
	settings, machines, err := clusterimport.SettingsOfAll(planes, file)
	if err != nil {
		return ClusterModel{}, clusterimport.ImportFailed("read the configurations of the control planes", err, "")
	}

	plane, diags := poolFrom(ctx, machineset.Group{}, machines, planes, true)
	handle, more := clusterimport.HandleOf(ctx, settings)
	diags.Append(more...)

	model := ClusterModel{CommonModel: plane.CommonModel, settingsModel: settingsFrom(handle, file, settings),
		TalosVersion: plane.TalosVersion}
	model.ID = handle.Name

	block, more := types.ObjectValueFrom(ctx, blockType(), plane.asBlock())
	diags.Append(more...)

	model.ControlPlane = block
	values := map[string]attr.Value{}

	seen, unread := plane.remembered()
	diags.Append(tf.Diagnostics(unread)...)

	for _, name := range slices.Sorted(maps.Keys(pools)) {
		_, machines, err := clusterimport.SettingsOfAll(pools[name], file)
		if err != nil {
			return model, append(diags, clusterimport.ImportFailed("read the configurations of the workers", err, "")...)
		}

		pool, more := poolFrom(ctx, machineset.Group{Prefix: name + machineset.PoolSeparator}, machines, pools[name], true)
		diags.Append(more...)

		imported, unread := pool.remembered()
		diags.Append(tf.Diagnostics(unread)...)
		maps.Copy(seen, imported)

		workers := workersModel{machinesModel: pool.asBlock(), TalosVersion: pool.TalosVersion}
		if workers.TalosVersion.Equal(model.TalosVersion) {
			workers.TalosVersion = types.StringNull()
		}

		value, more := types.ObjectValueFrom(ctx, workersType(), workers)
		diags.Append(more...)

		values[name] = value
	}

	model.remember(seen)
	model.Workers = types.MapNull(types.ObjectType{AttrTypes: workersType()})
	if len(values) > 0 {
		model.Workers = types.MapValueMust(types.ObjectType{AttrTypes: workersType()}, values)
	}

	return model, diags
}

// asBlock is the machines of a set as a block of talosop_cluster has them, in which
// defaults are left out.
func (m machineSetModel) asBlock() machinesModel {
	block := m.machinesModel
	block.ConfigPatches = types.ListNull(types.StringType)

	if block.Platform.ValueString() == clusterhandle.MetalMode {
		block.Platform = types.StringNull()
	}

	return block
}

func blockType() map[string]attr.Type { return tf.ObjectOf(blockAttributes("", "")).AttrTypes }

func workersType() map[string]attr.Type {
	return tf.ObjectOf(workersAttribute().NestedObject.Attributes).AttrTypes
}
