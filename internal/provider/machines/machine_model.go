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
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// OneMachineModel is a machine as in the maps of other resources, with the arguments that groups and resources have
// there. To the engine it is a set of one.
type OneMachineModel struct {
	machineModel

	Cluster   types.Object `tfsdk:"cluster"`
	Role      types.String `tfsdk:"role"`
	Name      types.String `tfsdk:"name"`
	Bootstrap types.Bool   `tfsdk:"bootstrap"`
	// AllowBootstrap is as in settingsModel.
	AllowBootstrap types.Bool   `tfsdk:"allow_bootstrap"`
	TalosVersion   types.String `tfsdk:"talos_version"`
	Schematic      types.String `tfsdk:"schematic"`
	Platform       types.String `tfsdk:"platform"`

	SystemModel
	lifecycleModel

	Observed   types.Object `tfsdk:"observed"`
	Talos      types.String `tfsdk:"observed_talos_version"`
	Kubernetes types.String `tfsdk:"observed_kubernetes_version"`
	Manifests  types.String `tfsdk:"bootstrap_manifests_version"`
}

// common has the observations under the name of the machine.
func (m OneMachineModel) common() CommonModel {
	common := CommonModel{lifecycleModel: m.lifecycleModel, observations: noObservations(), manifests: m.Manifests}
	common.Record = ofOne(m.Record, m.Name.ValueString())

	switch {
	case m.Observed.IsUnknown():
		common.observations = unknownObservations()
	case !m.Observed.IsNull():
		of := func(one attr.Value) types.Map {
			return types.MapValueMust(one.Type(context.Background()), map[string]attr.Value{m.Name.ValueString(): one})
		}
		common.observations = observations{of(m.Observed), of(m.Talos), of(m.Kubernetes)}
	}

	return common
}

func (m *OneMachineModel) setCommon(common CommonModel) {
	m.lifecycleModel, m.Manifests = common.lifecycleModel, common.manifests
	m.Record = ofOne(m.Record, m.Name.ValueString())
	m.Observed = ofTheOne(common.Observed, m.Name, types.ObjectNull(ObservedType().AttrTypes))
	m.Talos = ofTheOne(common.Talos, m.Name, types.StringNull())
	m.Kubernetes = ofTheOne(common.Kubernetes, m.Name, types.StringNull())
}

// ofTheOne is the value of the only machine in a map; otherwise if there is none.
func ofTheOne[V attr.Value](all types.Map, name types.String, otherwise V) V {
	element := otherwise.Type(context.Background())

	value, ok := theOne(all.Elements(), name.ValueString())
	if all.IsUnknown() {
		value, ok = tf.Unknown(element), true
	}

	if one, is := value.(V); ok && is {
		return one
	}

	return otherwise
}

// theOne is the value of the only machine. It may be under an earlier name. Replaced hardware that has not left yet
// comes first: its record identifies it.
func theOne[V any](machines map[string]V, name string) (one V, ok bool) {
	for _, candidate := range slices.Concat([]string{name + machineset.ReplacedSuffix, name},
		slices.Sorted(maps.Keys(machines))) {
		if one, ok = machines[candidate]; ok {
			return one, true
		}
	}

	return one, false
}

// ofOne is a record with the only machine under its name. An unreadable record stays unchanged, for
// CommonModel.remembered to report it.
func ofOne(stored types.String, name string) types.String {
	machines, err := record.Decode(stored.ValueString())

	one, ok := theOne(machines, name)
	if _, named := machines[name]; err != nil || !ok || named && len(machines) == 1 {
		return stored
	}

	return types.StringValue(record.Machines{name: one}.Encode())
}

func (m OneMachineModel) roleOf() step.Role { return step.Role(m.Role.ValueString()) }

// MachineSet reads the model as the only machine of a set.
func (m OneMachineModel) MachineSet(ctx context.Context) (writtenSet, diag.Diagnostics) {
	handle, diags := clusterhandle.HandleFrom(ctx, m.Cluster)

	one, more := m.asGroup(ctx)
	diags.Append(more...)

	p, more := machineSetOf(ctx, handle, types.ObjectNull(clusterhandle.WorkerHostType()), one)
	diags.Append(more...)

	p.Object, p.InHandle = "machine", true
	p.Single, p.Joins, p.Others = true, !m.Bootstrap.ValueBool(), m.beside(handle)
	p.Unknown.Note(machineset.UnknownCluster, handle.Phase.IsUnknown())
	p.allowBootstrap = m.AllowBootstrap
	m.Put(ctx, &p.Set)

	if m.Role.IsUnknown() || m.Bootstrap.IsUnknown() {
		p.Unknown.Note(machineset.UnknownMachines, true)
	}

	return p, append(diags, tf.Diagnostics(m.checkEndpoints(handle))...)
}

// asGroup is the machine as the only one of its group. A machine without a known name is unknown as a whole.
func (m OneMachineModel) asGroup(ctx context.Context) (*writtenGroup, diag.Diagnostics) {
	element := types.ObjectType{AttrTypes: machineType()}
	machines := types.MapUnknown(element)

	var diags diag.Diagnostics

	if !m.Name.IsUnknown() {
		value, more := types.ObjectValueFrom(ctx, element.AttrTypes, m.machineModel)
		diags.Append(more...)

		machines = types.MapValueMust(element, map[string]attr.Value{m.Name.ValueString(): value})
	}

	written := unsetReplicas(machinesModel{
		Machines: machines, Reset: types.ObjectNull(resetType()),
		groupModel: groupModel{NodeModel: settings.None[settings.NodeModel](), Install: types.ObjectNull(installType()),
			Schematic: m.Schematic, Platform: m.Platform,
			ConfigPatches: types.ListNull(types.StringType), SystemModel: m.SystemModel, SystemVolumes: noSystemVolumes()},
	})

	return writeGroup(machineset.Group{Role: m.roleOf(), VersionAt: finding.Root("talos_version")}, written,
		m.TalosVersion, types.StringNull()), diags
}

// beside lists the other control planes of the cluster; nil when the handle lists none or they are unknown.
func (m OneMachineModel) beside(handle clusterhandle.HandleModel) []cluster.Machine {
	endpoints, known := tf.KnownStrings(handle.TalosEndpoints)
	if !known || len(endpoints) == 0 {
		return nil
	}

	beside := []cluster.Machine{}

	for _, endpoint := range endpoints {
		if !m.place().Is(endpoint) {
			beside = append(beside, machineset.ControlPlanesAt(endpoint))
		}
	}

	return beside
}

// checkEndpoints refuses a control plane in a cluster whose control planes are not listed. They are asked before the
// bootstrap of etcd, against which Talos has no other protection, and before its end.
func (m OneMachineModel) checkEndpoints(handle clusterhandle.HandleModel) finding.List {
	if m.Bootstrap.ValueBool() && m.roleOf() == step.Worker {
		return finding.List{bootstrapOnWorker.At(finding.Root("bootstrap"), nil)}
	}

	endpoints, known := tf.KnownStrings(handle.TalosEndpoints)
	if !known || m.place().Unknown() || m.roleOf() != step.ControlPlane {
		return nil
	}

	at := finding.Root("cluster").AtName("talos_endpoints")
	listed := slices.ContainsFunc(endpoints, m.place().Is)

	switch {
	case m.Bootstrap.ValueBool() && !listed:
		return finding.List{bootstrapNotListed.At(at, finding.Args{"address": m.Address.ValueString()})}
	case len(endpoints) > 0 && !listed && handle.Phase.IsNull():
		// The handle of a resource lists the control planes of that resource. One that is written by hand has to list
		// them all, or one that bootstraps etcd again after a loss would not ask this one.
		return finding.List{controlPlaneNotListed.At(at, finding.Args{"address": m.Address.ValueString()})}
	case len(endpoints) == 0:
		return finding.List{controlPlanesMissing.At(at, nil)}
	default:
		return nil
	}
}

func (m *OneMachineModel) align(OneMachineModel, *OneMachineModel) {}

// derive makes the ID from the cluster and the machine.
func (m *OneMachineModel) derive(ctx context.Context) diag.Diagnostics {
	var diags diag.Diagnostics

	m.ID, diags = idIn(ctx, m.Cluster, m.Name)

	return diags
}

//nolint:unparam // diagnostics are what other models have of it
func (m *OneMachineModel) seenMeta(_ context.Context, want cluster.Spec, have cluster.Snapshot) diag.Diagnostics {
	for _, w := range want.Machines {
		if s := have.Machines[w.Name]; s.Access == step.Member && len(w.Meta) > 0 && !m.Meta.IsNull() {
			m.Meta = heldMeta(m.Meta, s.Meta)
		}
	}

	return nil
}

// settleUpdate stores the machine of the plan once it belongs to the resource, and nothing is left of the hardware
// that it replaces: there is one record, and its content identifies the machine.
//
//nolint:unparam // diagnostics are what other models have of it
func (m *OneMachineModel) settleUpdate(_ context.Context, done run, plan, state OneMachineModel) diag.Diagnostics {
	m.Locked = plan.Locked
	left := func(r cluster.Machine) bool { return !done.finished(r) }

	if done.halted() && len(done.want.Removed) > 0 && !slices.ContainsFunc(done.want.Removed, left) &&
		done.took(plan.Name.ValueString()) {
		m.machineModel, m.Name = plan.machineModel, plan.Name
	}

	common := m.common()
	common.settle(done, plan.common(), state.common())
	m.setCommon(common)

	return nil
}
