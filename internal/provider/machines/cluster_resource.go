package machines

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ resource.Resource                   = (*clusterResource)(nil)
	_ resource.ResourceWithConfigure      = (*clusterResource)(nil)
	_ resource.ResourceWithValidateConfig = (*clusterResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*clusterResource)(nil)
	_ resource.ResourceWithImportState    = (*clusterResource)(nil)
	_ resource.ResourceWithIdentity       = (*clusterResource)(nil)
	_ resource.ResourceWithUpgradeState   = (*clusterResource)(nil)
)

// NewClusterResource is the constructor of the resource talosop_cluster.
func NewClusterResource() resource.Resource {
	return &clusterResource{machinesResource[ClusterModel, *ClusterModel]{
		kind: "talosop_cluster", imports: clusterimport.OfCluster}}
}

// clusterResource creates a whole cluster: control plane and workers in one run, so that workers install while the
// control plane bootstraps.
type clusterResource struct {
	machinesResource[ClusterModel, *ClusterModel]
}

func (r *clusterResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Version: schemaVersion,
		MarkdownDescription: "A whole cluster in one resource: its control plane and its pools of workers.\n\nMachines " +
			"in maintenance mode become registered nodes, Ready unless Talos installs no CNI; after an unfinished create, " +
			"stored with its `phase`, the next apply continues. If control plane and workers are in different stacks, use " +
			"`talosop_control_plane` and `talosop_worker`.",
		Attributes: tf.WithTypes(clusterResourceAttributes(ctx)),
	}
}

func (r *clusterResource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	r.importState(ctx, req, resp, r.readOff)
}

// readOff reads a cluster from its machines.
func (r *clusterResource) readOff(
	ctx context.Context, request clusterimport.Request, file clusterimport.SecretsFile,
) (ClusterModel, map[string]clusterimport.Recognized, diag.Diagnostics) {
	planes, diags := clusterimport.Recognize(ctx, r.ProviderData, request.ControlPlane, file, step.ControlPlane)
	all, pools := map[string]clusterimport.Recognized{}, map[string]map[string]clusterimport.Recognized{}
	maps.Copy(all, planes)

	for _, name := range slices.Sorted(maps.Keys(request.Workers)) {
		found, more := request.Recognize(ctx, r.ProviderData, request.Workers[name], file, step.Worker)
		diags.Append(more...)

		pools[name] = found
		for key, machine := range found {
			all[name+machineset.PoolSeparator+key] = machine
		}
	}

	if err := errors.Join(clusterimport.ListedTwice(all)...); err != nil {
		diags.Append(clusterimport.ImportFailed("compare the machines", err, "List each machine once.")...)
	}

	if diags.HasError() {
		return ClusterModel{}, nil, diags
	}

	model, diags := clusterFrom(ctx, file, planes, pools)

	return model, all, diags
}
