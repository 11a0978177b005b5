package provider

import (
	"context"
	"errors"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

var (
	_ resource.Resource                   = (*clusterResource)(nil)
	_ resource.ResourceWithConfigure      = (*clusterResource)(nil)
	_ resource.ResourceWithValidateConfig = (*clusterResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*clusterResource)(nil)
	_ resource.ResourceWithImportState    = (*clusterResource)(nil)
)

func newClusterResource() resource.Resource { return &clusterResource{} }

// clusterResource makes a whole cluster: control plane and workers in one run, so
// that workers install while the control plane bootstraps.
type clusterResource struct{ *machinery }

func (r *clusterResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_cluster"
}

func (r *clusterResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	m, err := machineryOf(req.ProviderData)
	if err != nil {
		resp.Diagnostics.Append(bug(err.Error()))
	}

	r.machinery = m
}

func (r *clusterResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A whole cluster in one resource: its control plane and its pools of workers, from machines that wait in maintenance mode to nodes " +
			"that are registered (and Ready, unless `cni` is `none`). Workers are installed while the control plane bootstraps. For stacks in which control " +
			"plane and workers are apart, use `talosop_control_plane` and `talosop_worker`; the latter also joins workers to a cluster of this resource.\n\n" +
			"A create that was begun and could not finish is stored with its `phase` and a warning, and the next apply goes on; use a postcondition on " +
			"`phase` to make the run fail all the same. Destroying the resource resets all machines into maintenance mode, unless `on_destroy` is `preserve`.",
		Attributes: clusterResourceAttributes(ctx),
	}
}

func (r *clusterResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config clusterModel

	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)

	if resp.Diagnostics.HasError() {
		return
	}

	if config.VersionContract.IsNull() {
		config.VersionContract = contractOf(config.TalosVersion)
	}

	p, diags := config.pool(ctx)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(p.validate()...)
}

func (r *clusterResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, state clusterModel

	if req.Plan.Raw.IsNull() {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		resp.Diagnostics.Append(state.guardDestroy("talosop_cluster")...)

		return
	}

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)

	if resp.Diagnostics.HasError() {
		return
	}

	change := editOf(plan.lifeModel, req.Config)
	plan.ID = plan.Name

	// Unknown in the plan is what the user gave as unknown, and what was not given.
	var contract types.String

	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("version_contract"), &contract)...)

	pinned := contract.IsNull()

	if req.State.Raw.IsNull() {
		resp.Diagnostics.Append(guardReplace(ctx, req.Private, "talosop_cluster", plan.Name)...)
		resp.Diagnostics.Append(r.planCreate(ctx, &plan, pinned)...)
	} else {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		resp.Diagnostics.Append(r.planUpdate(ctx, &plan, state, change, pinned)...)
	}

	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	}
}

// planCreate forecasts a create. pinned says that the version contract is ours to
// choose: once, now.
func (r *clusterResource) planCreate(ctx context.Context, plan *clusterModel, pinned bool) diag.Diagnostics {
	if pinned {
		plan.VersionContract = contractOf(plan.TalosVersion)
	}

	p, diags := plan.pool(ctx)
	plan.apply(planCreate(p, cluster.DefaultPolicy()))

	return append(diags, plan.export(ctx)...)
}

func (r *clusterResource) planUpdate(ctx context.Context, plan *clusterModel, state clusterModel, change edit, pinned bool) diag.Diagnostics {
	if pinned {
		plan.VersionContract = state.VersionContract
	}

	p, diags := plan.pool(ctx)
	prior, more := state.pool(ctx)
	diags.Append(more...)

	f, more := planUpdate(ctx, p, prior, state.lifeModel, change, cluster.DefaultPolicy())
	diags.Append(more...)
	plan.apply(f)

	return append(diags, plan.export(ctx)...)
}

func (r *clusterResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan clusterModel

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

	resp.Diagnostics.Append(plan.export(ctx)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, protectionKey, plan.protection())...)
}

func (r *clusterResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state clusterModel

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	ctx, cancel := state.deadline(ctx, opRead, &resp.Diagnostics)
	defer cancel()

	p, diags := state.pool(ctx)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	resp.Diagnostics.Append(r.refresh(maskSecrets(ctx, p.secrets), &state.lifeModel, p, state.seenMeta)...)
	resp.Diagnostics.Append(state.export(ctx)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, protectionKey, state.protection())...)
}

func (r *clusterResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state clusterModel

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

	if !plan.idle() {
		done, diags := r.update(maskSecrets(ctx, p.secrets), p, prior, state.lifeModel)
		resp.Diagnostics.Append(diags...)

		if done.err != nil {
			// What was not finished stays a difference between state and configuration.
			result = state
		}

		resp.Diagnostics.Append(result.settleUpdate(ctx, done, plan, state)...)
	}

	resp.Diagnostics.Append(result.export(ctx)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &result)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, protectionKey, result.protection())...)
}

func (r *clusterResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state clusterModel

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	ctx, cancel := state.deadline(ctx, opDelete, &resp.Diagnostics)
	defer cancel()

	p, diags := state.pool(ctx)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	resp.Diagnostics.Append(r.remove(maskSecrets(ctx, p.secrets), "talosop_cluster", state.lifeModel, p)...)
}

func (r *clusterResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	request, bundle, diags := readImport(req.ID, importOfCluster)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	ctx = maskSecrets(ctx, bundle.text)

	planes, diags := r.recognise(ctx, request.ControlPlane, bundle, cluster.ControlPlane)
	resp.Diagnostics.Append(diags...)

	all := map[string]recognised{}
	maps.Copy(all, planes)

	pools := map[string]map[string]recognised{}

	for _, name := range sortedNames(request.Workers) {
		found, diags := r.recognise(ctx, request.Workers[name], bundle, cluster.Worker)
		resp.Diagnostics.Append(diags...)

		pools[name] = found
		for key, machine := range found {
			all[name+poolSeparator+key] = machine
		}
	}

	if err := errors.Join(listedTwice(all)...); err != nil {
		resp.Diagnostics.Append(importFailed("compare the machines", err, "List each machine once.")...)
	}

	if resp.Diagnostics.HasError() {
		return
	}

	model, diags := clusterFrom(ctx, request, bundle, planes, pools)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	resp.Diagnostics.Append(r.adopt(ctx, &model.lifeModel, model.pool)...)
	resp.Diagnostics.Append(model.export(ctx)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}
