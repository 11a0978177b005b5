package machines

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ resource.Resource                   = (*workerResource)(nil)
	_ resource.ResourceWithConfigure      = (*workerResource)(nil)
	_ resource.ResourceWithValidateConfig = (*workerResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*workerResource)(nil)
	_ resource.ResourceWithImportState    = (*workerResource)(nil)
	_ resource.ResourceWithIdentity       = (*workerResource)(nil)
	_ resource.ResourceWithUpgradeState   = (*workerResource)(nil)
)

// NewWorkerResource is the constructor of the resource talosop_worker.
func NewWorkerResource() resource.Resource {
	return &workerResource{machinesResource[WorkerModel, *WorkerModel]{
		kind: "talosop_worker", imports: clusterimport.OfWorkers}}
}

// workerResource joins a pool of workers to a cluster through its handle.
type workerResource struct {
	machinesResource[WorkerModel, *WorkerModel]
}

func (r *workerResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := poolAttributes(ctx, "worker", false)

	attributes["name"] = schema.StringAttribute{
		Optional: true,
		Computed: true,
		Default:  stringdefault.StaticString(DefaultPoolName),
		MarkdownDescription: "Name of the pool in IDs and messages, unique in its cluster (default `worker`). On metal a " +
			"change touches no machine. Containers carry the name: a change creates new machines and removes the old ones.",
	}
	attributes["max_unavailable"] = rollout.MaxUnavailable()
	attributes["host"] = clusterhandle.WorkerHostAttribute()
	attributes["cluster"] = schema.SingleNestedAttribute{
		Required:      true,
		PlanModifiers: []planmodifier.Object{clusterhandle.KeepHandle("talos_version", "phase")},
		MarkdownDescription: "Handle of the cluster that the workers join: `cluster` of `talosop_control_plane` or " +
			"`talosop_cluster`, or an object that you write for any other cluster.",
		Attributes: clusterhandle.JoinHandle(clusterhandle.ReplacesWorkers),
	}

	resp.Schema = schema.Schema{
		Version: schemaVersion,
		MarkdownDescription: "A pool of workers that joins a cluster. It configures the machines in parallel, and " +
			"completes when every node is registered (and Ready, unless `cni` of the cluster is `none`).\n\nDestroying it " +
			"drains the nodes, resets the machines into maintenance mode and removes the nodes from Kubernetes, unless " +
			"`on_destroy` is `preserve`.",
		Attributes: tf.WithTypes(attributes),
	}
}

func (r *workerResource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	r.importState(ctx, req, resp, r.readOff)
}

// readOff reads workers from their machines, and their cluster from its control planes.
func (r *workerResource) readOff(
	ctx context.Context, request clusterimport.Request, file clusterimport.SecretsFile,
) (WorkerModel, map[string]clusterimport.Recognized, diag.Diagnostics) {
	planes, diags := clusterimport.Recognize(ctx, r.ProviderData, request.ControlPlane, file, step.ControlPlane)
	found, more := request.Recognize(ctx, r.ProviderData, request.Machines, file, step.Worker)
	diags.Append(more...)

	if diags.HasError() {
		return WorkerModel{}, nil, diags
	}

	model, diags := workersFrom(ctx, request, file, planes, found)

	return model, found, diags
}
