package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

type workerModel struct {
	poolModel

	Name    types.String `tfsdk:"name"`
	Cluster types.Object `tfsdk:"cluster"`
}

// pool reads the model as machines of one role in one cluster.
func (m workerModel) pool(ctx context.Context) (pool, diag.Diagnostics) {
	handle, diags := handleFrom(ctx, m.Cluster)

	p, more := m.poolModel.pool(ctx, handle, cluster.Worker)
	p.object, p.inHandle = "workers", true
	diags.Append(more...)

	return p, diags
}
