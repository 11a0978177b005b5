package machines

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
)

// WorkerModel is a pool of workers in a cluster, known by its handle.
type WorkerModel struct {
	machineSetModel

	Name           types.String `tfsdk:"name"`
	Cluster        types.Object `tfsdk:"cluster"`
	MaxUnavailable types.String `tfsdk:"max_unavailable"`
	Host           types.Object `tfsdk:"host"`
}

// MachineSet reads the model as machines of one role in one cluster.
func (m WorkerModel) MachineSet(ctx context.Context) (writtenSet, diag.Diagnostics) {
	handle, diags := clusterhandle.HandleFrom(ctx, m.Cluster)

	p, more := m.machineSetModel.MachineSet(ctx, handle, m.Host,
		machineset.Group{Role: step.Worker, Pool: m.Name.ValueString()}, m.MaxUnavailable,
		settings.PlaneModel{})
	p.Object, p.InHandle = "workers", true
	diags.Append(more...)

	return p, diags
}

func (m *WorkerModel) align(WorkerModel, *WorkerModel) {}

// derive makes the ID from the cluster and the pool.
func (m *WorkerModel) derive(ctx context.Context) diag.Diagnostics {
	var diags diag.Diagnostics

	m.ID, diags = idIn(ctx, m.Cluster, m.Name)

	return diags
}

func (m *WorkerModel) settleUpdate(ctx context.Context, done run, plan, state WorkerModel) diag.Diagnostics {
	return m.machineSetModel.settleUpdate(ctx, done,
		&machineset.Group{Role: step.Worker, Pool: plan.Name.ValueString()}, plan.machineSetModel, state.machineSetModel)
}

// idIn is the ID of something in a cluster: the names of both.
func idIn(ctx context.Context, clusterHandle types.Object, name types.String) (types.String, diag.Diagnostics) {
	handle, diags := clusterhandle.HandleFrom(ctx, clusterHandle)
	if diags.HasError() || handle.Name.IsUnknown() || name.IsUnknown() {
		return types.StringUnknown(), diags
	}

	return types.StringValue(handle.Name.ValueString() + "/" + name.ValueString()), diags
}
