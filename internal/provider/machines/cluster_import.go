package machines

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/setting"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// clusterFrom is the model of a whole cluster as its machines describe it. Settings of all machines belong to the
// cluster if there are workers: others of control planes alone may join later.
func clusterFrom(
	ctx context.Context, file clusterimport.SecretsFile, planes map[string]clusterimport.Recognized,
	pools map[string]map[string]clusterimport.Recognized,
) (ClusterModel, diag.Diagnostics) {
	of, ofPlanes, err := clusterimport.SettingsOfAll(planes, file)
	if err != nil {
		return ClusterModel{}, clusterimport.ImportFailed("read the configurations of the control planes", err, "")
	}

	ofPools, common := map[string]map[string]machineconfig.Machine{}, setting.Values(nil)

	for name, pool := range pools {
		if _, ofPools[name], err = clusterimport.SettingsOfAll(pool, file); err != nil {
			return ClusterModel{}, clusterimport.ImportFailed("read the configurations of the workers", err, "")
		}
	}

	if len(pools) > 0 {
		common = commonSettings(append(slices.Collect(maps.Values(ofPools)), ofPlanes)...)
	}

	common = setting.Merge(common, commonSettings(ofPlanes).OfControlPlanes())

	plane, diags := poolFrom(ctx, machineset.Group{}, withoutSettings(common, ofPlanes), planes, true)
	handle := clusterimport.HandleOf(of)

	model := ClusterModel{CommonModel: plane.CommonModel, settingsModel: settingsFrom(handle, file, of),
		TalosVersion: plane.TalosVersion, Upgrade: rollout.NoUpgrade()}
	model.ID = handle.Name
	settings.Write(common, &model.NodeModel, &model.PlaneModel)

	// Settings of control planes alone are at the cluster or at single machines.
	block, more := types.ObjectValueFrom(ctx, planesType(),
		planesModel{machinesModel: plane.asBlock(), VIPModel: settings.None[settings.VIPModel]()})
	diags.Append(more...)

	model.ControlPlane = block

	seen, unread := plane.remembered()
	diags.Append(tf.Diagnostics(unread)...)

	return model, append(diags, model.poolsFrom(ctx, common, pools, ofPools, seen)...)
}

// poolsFrom fills in the pools of workers. seen is the record of the control planes.
func (m *ClusterModel) poolsFrom(
	ctx context.Context, common setting.Values, pools map[string]map[string]clusterimport.Recognized,
	ofPools map[string]map[string]machineconfig.Machine, seen record.Machines,
) (diags diag.Diagnostics) {
	values := map[string]attr.Value{}

	for _, name := range slices.Sorted(maps.Keys(pools)) {
		pool, more := poolFrom(ctx, machineset.Group{Prefix: name + machineset.PoolSeparator},
			withoutSettings(common, ofPools[name]), pools[name], true)
		diags.Append(more...)

		imported, unread := pool.remembered()
		diags.Append(tf.Diagnostics(unread)...)
		maps.Copy(seen, imported)

		workers := workersModel{machinesModel: pool.asBlock(), TalosVersion: pool.TalosVersion}
		if workers.TalosVersion.Equal(m.TalosVersion) {
			workers.TalosVersion = types.StringNull()
		}

		value, more := types.ObjectValueFrom(ctx, workersType(), workers)
		diags.Append(more...)

		values[name] = value
	}

	m.remember(seen)
	m.Workers = types.MapNull(types.ObjectType{AttrTypes: workersType()})

	if len(values) > 0 {
		m.Workers = types.MapValueMust(types.ObjectType{AttrTypes: workersType()}, values)
	}

	return diags
}

// asBlock is the machines of a set as a block of talosop_cluster, without defaults.
func (m machineSetModel) asBlock() machinesModel {
	block := m.machinesModel
	block.ConfigPatches = types.ListNull(types.StringType)

	if block.Platform.ValueString() == clusterhandle.MetalMode {
		block.Platform = types.StringNull()
	}

	return block
}

func planesType() map[string]attr.Type { return tf.ObjectOf(planesAttributes()).AttrTypes }

func workersType() map[string]attr.Type {
	return tf.ObjectOf(workersAttribute().NestedObject.Attributes).AttrTypes
}
