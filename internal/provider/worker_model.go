package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// workerModel is a pool of workers in a cluster that it knows by its handle.
type workerModel struct {
	poolModel

	Name           types.String `tfsdk:"name"`
	Cluster        types.Object `tfsdk:"cluster"`
	MaxUnavailable types.String `tfsdk:"max_unavailable"`
	Host           types.Object `tfsdk:"host"`
}

// pool reads the model as machines of one role in one cluster.
func (m workerModel) pool(ctx context.Context) (pool, diag.Diagnostics) {
	handle, diags := handleFrom(ctx, m.Cluster)

	p, more := m.poolModel.pool(ctx, handle, m.Host, &group{role: cluster.Worker, pool: m.Name.ValueString(), maxUnavailable: m.MaxUnavailable})
	p.object, p.inHandle = "workers", true
	diags.Append(more...)

	return p, diags
}

func (m *workerModel) align(workerModel, *workerModel) {}

// derive names the pool by its cluster and itself.
func (m *workerModel) derive(ctx context.Context) diag.Diagnostics {
	var diags diag.Diagnostics

	m.ID, diags = idIn(ctx, m.Cluster, m.Name)

	return diags
}

func (m *workerModel) settleUpdate(ctx context.Context, done run, plan, state workerModel) diag.Diagnostics {
	return m.poolModel.settleUpdate(ctx, done, &group{role: cluster.Worker, pool: plan.Name.ValueString()}, plan.poolModel, state.poolModel)
}

// idIn is the name of a cluster and of something in it.
func idIn(ctx context.Context, clusterHandle types.Object, name types.String) (types.String, diag.Diagnostics) {
	handle, diags := handleFrom(ctx, clusterHandle)
	if diags.HasError() || handle.Name.IsUnknown() || name.IsUnknown() {
		return types.StringUnknown(), diags
	}

	return types.StringValue(handle.Name.ValueString() + "/" + name.ValueString()), diags
}
