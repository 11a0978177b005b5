package machines

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/endpoint"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// ClusterModel is the resource talosop_cluster.
type ClusterModel struct {
	CommonModel
	settingsModel
	settings.NodeModel
	settings.PlaneModel

	TalosVersion types.String `tfsdk:"talos_version"`
	ControlPlane types.Object `tfsdk:"control_plane"`
	Workers      types.Map    `tfsdk:"workers"`
	Upgrade      types.Object `tfsdk:"upgrade"`
}

// planesModel is the control plane of a cluster.
type planesModel struct {
	machinesModel
	settings.VIPModel
}

// workersModel is one pool of workers of a cluster.
type workersModel struct {
	machinesModel

	TalosVersion   types.String `tfsdk:"talos_version"`
	MaxUnavailable types.String `tfsdk:"max_unavailable"`
}

func (m ClusterModel) common() CommonModel { return m.withSettings(m.CommonModel) }

func (m *ClusterModel) setCommon(common CommonModel) {
	m.CommonModel = common
	m.setFrom(common)
}

// handle describes the cluster for other resources, as far as it is known.
func (m ClusterModel) handle(ctx context.Context) clusterhandle.HandleModel {
	endpoints := endpoint.UnknownLists()

	if plane, ok := tf.Object[planesModel](ctx, &tf.Reader{}, m.ControlPlane); ok {
		endpoints = m.talosEndpoints(ctx, plane.machinesModel)
	}

	handle := m.handleAs(m.TalosVersion, m.Phase, endpoints)
	handle.NodeModel, handle.PlaneModel = m.NodeModel, m.PlaneModel

	return handle
}

func (m *ClusterModel) align(given ClusterModel, state *ClusterModel) {
	var before *settingsModel
	if state != nil {
		before = &state.settingsModel
	}

	m.pinContract(given.settingsModel, before, m.TalosVersion)
	m.pinEndpoint(given.settingsModel)
}

// derive fills the cluster handle from the model.
func (m *ClusterModel) derive(ctx context.Context) diag.Diagnostics {
	m.ID = m.Name

	patches := types.ListUnknown(types.StringType)
	if plane, ok := tf.Object[planesModel](ctx, &tf.Reader{}, m.ControlPlane); ok {
		patches = plane.ConfigPatches
	}

	return m.exportAs(ctx, m.handle(ctx), patches)
}

// MachineSet reads the model as machines of both roles in one cluster.
func (m ClusterModel) MachineSet(ctx context.Context) (writtenSet, diag.Diagnostics) {
	r := &tf.Reader{}
	groups := m.groups(ctx, r)

	p, diags := machineSetOf(ctx, m.handle(ctx), m.Host, groups...)
	m.putOwn(ctx, &p.Set)
	p.allowBootstrap = m.AllowBootstrap
	m.Put(ctx, &p.Set)
	rollout.PutUpgrade(ctx, m.Upgrade, &p.Set)

	p.Changes.UpdateTimeout = tf.UpdateTimeout(ctx, m.Timeouts)

	diags = append(diags, m.restore(ctx, &p)...)

	p.Object = wholeCluster
	p.Unknown.Note(machineset.UnknownMachines, r.Unknown)

	return p, append(r.Diags, diags...)
}

// groups lists the blocks of machines, the control plane first. It leaves out blocks that are unknown as a whole,
// which the reader remembers.
func (m ClusterModel) groups(ctx context.Context, r *tf.Reader) []*writtenGroup {
	var groups []*writtenGroup

	at, versionAt := finding.Root("control_plane"), finding.Root("talos_version")

	if plane, ok := tf.Object[planesModel](ctx, r, m.ControlPlane); ok {
		g := writeGroup(machineset.Group{Role: step.ControlPlane, At: at, VersionAt: versionAt}, plane.machinesModel,
			m.TalosVersion, types.StringNull())
		g.planes.VIPModel = plane.VIPModel
		groups = append(groups, g)
	}

	pools := tf.Objects[workersModel](ctx, r, m.Workers)

	for _, name := range slices.Sorted(maps.Keys(pools)) {
		at := finding.Root("workers").AtMapKey(name)
		g := machineset.Group{Role: step.Worker, At: at, Prefix: name + machineset.PoolSeparator, Pool: name,
			VersionAt: versionAt}
		version := m.TalosVersion

		if own := pools[name].TalosVersion; !own.IsNull() {
			version, g.VersionAt = own, at.AtName("talos_version")
		}

		groups = append(groups, writeGroup(g, pools[name].machinesModel, version, pools[name].MaxUnavailable))
	}

	return groups
}

// seenMeta replaces META values in state by those that the members hold.
func (m *ClusterModel) seenMeta(ctx context.Context, want cluster.Spec, have cluster.Snapshot) diag.Diagnostics {
	plane, diags := withMachines(ctx, m.ControlPlane, func(machines types.Map) (types.Map, diag.Diagnostics) {
		return withMeta(ctx, "", machines, want, have)
	})

	pools := map[string]attr.Value{}

	for name, block := range m.Workers.Elements() {
		pool, more := withMachines(ctx, block, func(machines types.Map) (types.Map, diag.Diagnostics) {
			return withMeta(ctx, name+machineset.PoolSeparator, machines, want, have)
		})
		diags.Append(more...)

		pools[name] = pool
	}

	diags.Append(m.setBlocks(ctx, plane, pools, m.Workers)...)

	return diags
}

// settleUpdate puts the outcome of an update into the stored model, like that of resources with one role.
func (m *ClusterModel) settleUpdate(ctx context.Context, done run, plan, state ClusterModel) diag.Diagnostics {
	common := m.common()
	common.settle(done, plan.common(), state.common())
	m.setCommon(common)

	switch {
	case !done.halted():
		return nil
	case plan.Mode.ValueString() == clusterhandle.ContainerMode:
		return m.hold(ctx, done, plan, state)
	}

	plane, diags := withMachines(ctx, state.ControlPlane, func(machines types.Map) (types.Map, diag.Diagnostics) {
		return done.joined(ctx, "", machines, machinesOf(plan.ControlPlane))
	})

	pools := map[string]attr.Value{}

	for name := range mergedKeys(state.Workers, plan.Workers) {
		block, stored := state.Workers.Elements()[name]
		wanted := plan.Workers.Elements()[name]
		recorded := machinesOf(block)

		if !stored {
			block = wanted
		}

		pool, more := withMachines(ctx, block, func(types.Map) (types.Map, diag.Diagnostics) {
			return done.joined(ctx, name+machineset.PoolSeparator, recorded, machinesOf(wanted))
		})
		diags.Append(more...)

		// A pool is stored while it has any machine.
		if len(machinesOf(pool).Elements()) > 0 {
			pools[name] = pool
		}
	}

	diags.Append(m.setBlocks(ctx, plane, pools, state.Workers)...)

	return diags
}

// hold is settleUpdate for machines in containers: how many of each group may exist.
func (m *ClusterModel) hold(ctx context.Context, done run, plan, state ClusterModel) diag.Diagnostics {
	plane, diags := withReplicas(ctx, state.ControlPlane,
		done.hold(&machineset.Group{Role: step.ControlPlane}, replicasOf(state.ControlPlane),
			replicasOf(plan.ControlPlane)))
	pools := map[string]attr.Value{}

	for name := range mergedKeys(state.Workers, plan.Workers) {
		block, stored := state.Workers.Elements()[name]
		wanted, listed := plan.Workers.Elements()[name]
		held := done.hold(&machineset.Group{Role: step.Worker, Prefix: name + machineset.PoolSeparator}, replicasOf(block),
			replicasOf(wanted))

		if !stored {
			block = wanted
		}

		pool, more := withReplicas(ctx, block, held)
		diags.Append(more...)

		// A pool is stored while it is configured, or any of its machines exists.
		if listed || held.ValueInt64() > 0 {
			pools[name] = pool
		}
	}

	diags.Append(m.setBlocks(ctx, plane, pools, state.Workers)...)

	return diags
}

// replicasOf reads the number of machines in containers of a block; null without a block.
func replicasOf(block attr.Value) types.Int64 {
	if object, ok := block.(types.Object); ok {
		if replicas, ok := object.Attributes()["replicas"].(types.Int64); ok {
			return replicas
		}
	}

	return types.Int64Null()
}

// withReplicas returns a block with another number of machines in containers.
func withReplicas(ctx context.Context, block attr.Value, replicas types.Int64) (types.Object, diag.Diagnostics) {
	object, ok := block.(types.Object)
	if !ok || object.IsNull() || object.IsUnknown() {
		return object, nil
	}

	values := object.Attributes()
	values["replicas"] = replicas

	return types.ObjectValue(object.AttributeTypes(ctx), values)
}

// mergedKeys is the keys of two maps.
func mergedKeys(a, b types.Map) map[string]bool {
	keys := map[string]bool{}

	for _, m := range []types.Map{a, b} {
		for key := range m.Elements() {
			keys[key] = true
		}
	}

	return keys
}

// setBlocks stores the machines. Without pools the map stays unchanged: null and empty mean the same.
func (m *ClusterModel) setBlocks(
	ctx context.Context, plane types.Object, pools map[string]attr.Value, was types.Map,
) diag.Diagnostics {
	m.ControlPlane, m.Workers = plane, was

	if len(pools) == 0 && len(was.Elements()) == 0 {
		return nil
	}

	workers, diags := types.MapValue(was.ElementType(ctx), pools)
	m.Workers = workers

	return diags
}

// machinesOf reads the machines of a block; there are none without a block.
func machinesOf(block attr.Value) types.Map {
	if object, ok := block.(types.Object); ok {
		if machines, ok := object.Attributes()["machines"].(types.Map); ok {
			return machines
		}
	}

	return types.MapNull(types.ObjectType{AttrTypes: machineType()})
}

// withMachines returns a block with other machines.
func withMachines(
	ctx context.Context, block attr.Value, change func(types.Map) (types.Map, diag.Diagnostics),
) (types.Object, diag.Diagnostics) {
	object, ok := block.(types.Object)
	if !ok || object.IsNull() || object.IsUnknown() {
		return object, nil
	}

	machines, diags := change(machinesOf(object))
	if diags.HasError() {
		return object, diags
	}

	values := object.Attributes()
	values["machines"] = machines

	changed, more := types.ObjectValue(object.AttributeTypes(ctx), values)

	return changed, append(diags, more...)
}
