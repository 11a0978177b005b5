package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

var (
	_ resource.Resource                   = (*workerResource)(nil)
	_ resource.ResourceWithConfigure      = (*workerResource)(nil)
	_ resource.ResourceWithValidateConfig = (*workerResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*workerResource)(nil)
	_ resource.ResourceWithImportState    = (*workerResource)(nil)
)

// defaultPoolName is the name of a pool of workers that has none of its own.
const defaultPoolName = "worker"

func newWorkerResource() resource.Resource { return &workerResource{} }

// workerResource joins a pool of workers to a cluster that it knows by its handle.
type workerResource struct{ *machinery }

func (r *workerResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_worker"
}

func (r *workerResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	m, err := machineryOf(req.ProviderData)
	if err != nil {
		resp.Diagnostics.Append(bug(err.Error()))
	}

	r.machinery = m
}

func (r *workerResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := poolAttributes(ctx, "worker", false)

	attributes["name"] = schema.StringAttribute{
		Optional: true,
		Computed: true,
		Default:  stringdefault.StaticString(defaultPoolName),
		MarkdownDescription: "Name of the pool, for ids and messages: clusters may have several pools, each a resource. Default: `worker`." +
			terraformOnly,
	}
	attributes["cluster"] = schema.SingleNestedAttribute{
		Required: true,
		MarkdownDescription: "Handle of the cluster the workers join: `cluster` of `talosop_control_plane` or `talosop_cluster`, or an object written by hand for a cluster that " +
			"was made with other tools. Another `name` in it replaces the resource.",
		Attributes: workerHandleAttributes(),
	}

	resp.Schema = schema.Schema{
		MarkdownDescription: "A pool of workers that joins a cluster. The machines are configured side by side, and the resource is complete when every node is " +
			"registered (and Ready, unless `cni` of the cluster is `none`).\n\nDestroying it drains the nodes, resets the machines into maintenance mode and " +
			"removes the nodes from Kubernetes, unless `on_destroy` is `preserve`.",
		Attributes: attributes,
	}
}

// workerHandleAttributes are those of the handle; workers cannot follow a cluster
// that is another one.
func workerHandleAttributes() map[string]schema.Attribute {
	attributes := handleAttributes()

	if name, ok := attributes["name"].(schema.StringAttribute); ok {
		name.PlanModifiers = []planmodifier.String{replaceOnChange()}
		attributes["name"] = name
	}

	return attributes
}

func (r *workerResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config workerModel

	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)

	if resp.Diagnostics.HasError() {
		return
	}

	p, diags := config.pool(ctx)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(p.validate()...)
}

func (r *workerResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, state workerModel

	if req.Plan.Raw.IsNull() {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		resp.Diagnostics.Append(state.guardDestroy("talosop_worker")...)

		return
	}

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)

	if resp.Diagnostics.HasError() {
		return
	}

	p, diags := plan.pool(ctx)
	resp.Diagnostics.Append(diags...)

	change := editOf(plan.lifeModel, req.Config)
	plan.ID = workerID(ctx, plan)

	if req.State.Raw.IsNull() {
		resp.Diagnostics.Append(guardReplace(ctx, req.Private, "talosop_worker", plan.ID)...)
		plan.apply(planCreate(p, cluster.DefaultPolicy()))
	} else {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		resp.Diagnostics.Append(r.planUpdate(ctx, &plan, state, p, change)...)
	}

	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	}
}

func (r *workerResource) planUpdate(ctx context.Context, plan *workerModel, state workerModel, p pool, change edit) diag.Diagnostics {
	prior, diags := state.pool(ctx)

	f, more := planUpdate(ctx, p, prior, state.lifeModel, change, cluster.DefaultPolicy())
	diags.Append(more...)
	plan.apply(f)

	return diags
}

// workerID is the name of the cluster and of the pool.
func workerID(ctx context.Context, m workerModel) types.String {
	handle, diags := handleFrom(ctx, m.Cluster)
	if diags.HasError() || handle.Name.IsUnknown() || m.Name.IsUnknown() {
		return types.StringUnknown()
	}

	return types.StringValue(handle.Name.ValueString() + "/" + m.Name.ValueString())
}

func (r *workerResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan workerModel

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)

	ctx, cancel := plan.deadline(ctx, opCreate, &resp.Diagnostics)
	defer cancel()

	p, diags := plan.pool(ctx)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	done := r.converge(maskSecrets(ctx, p.secrets), p, recordedPool{})
	diags, begun := plan.settleCreate(p, done)
	resp.Diagnostics.Append(diags...)

	if !begun {
		return
	}

	plan.ID = workerID(ctx, plan)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, protectionKey, plan.protection())...)
}

func (r *workerResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state workerModel

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	ctx, cancel := state.deadline(ctx, opRead, &resp.Diagnostics)
	defer cancel()

	p, diags := state.pool(ctx)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	resp.Diagnostics.Append(r.refresh(maskSecrets(ctx, p.secrets), &state.lifeModel, p, state.seenMeta)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, protectionKey, state.protection())...)
}

func (r *workerResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state workerModel

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	ctx, cancel := plan.deadline(ctx, opUpdate, &resp.Diagnostics)
	defer cancel()

	p, diags := plan.pool(ctx)
	resp.Diagnostics.Append(diags...)

	prior, diags := state.pool(ctx)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	result := plan
	result.ID = workerID(ctx, plan)

	if !plan.idle() {
		done, diags := r.update(maskSecrets(ctx, p.secrets), p, prior, state.lifeModel)
		resp.Diagnostics.Append(diags...)

		if done.err != nil {
			// What was not finished stays a difference between state and configuration.
			result = state
		}

		resp.Diagnostics.Append(result.settleUpdate(ctx, done, plan.poolModel, state.poolModel)...)
	}

	resp.Diagnostics.Append(resp.State.Set(ctx, &result)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, protectionKey, result.protection())...)
}

func (r *workerResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state workerModel

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	ctx, cancel := state.deadline(ctx, opDelete, &resp.Diagnostics)
	defer cancel()

	p, diags := state.pool(ctx)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	resp.Diagnostics.Append(r.remove(maskSecrets(ctx, p.secrets), "talosop_worker", state.lifeModel, p)...)
}

func (r *workerResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	request, bundle, diags := readImport(req.ID, importOfWorkers)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	ctx = maskSecrets(ctx, bundle.text)

	planes, diags := r.recognise(ctx, request.ControlPlane, bundle, cluster.ControlPlane)
	resp.Diagnostics.Append(diags...)

	found, diags := r.recognise(ctx, request.Machines, bundle, cluster.Worker)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	model, diags := workersFrom(ctx, request, bundle, planes, found)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(r.adopt(ctx, &model.lifeModel, model.pool)...)

	if resp.Diagnostics.HasError() {
		return
	}

	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}
