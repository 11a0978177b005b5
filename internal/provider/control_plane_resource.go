package provider

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

var (
	_ resource.Resource                   = (*controlPlaneResource)(nil)
	_ resource.ResourceWithConfigure      = (*controlPlaneResource)(nil)
	_ resource.ResourceWithValidateConfig = (*controlPlaneResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*controlPlaneResource)(nil)
	_ resource.ResourceWithImportState    = (*controlPlaneResource)(nil)
)

func newControlPlaneResource() resource.Resource { return &controlPlaneResource{} }

// controlPlaneResource makes the control plane of a cluster: it is the only
// resource that bootstraps etcd.
type controlPlaneResource struct{ *machinery }

func (r *controlPlaneResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_control_plane"
}

func (r *controlPlaneResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	m, err := machineryOf(req.ProviderData)
	if err != nil {
		resp.Diagnostics.Append(bug(err.Error()))
	}

	r.machinery = m
}

func (r *controlPlaneResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := poolAttributes(ctx, "control-plane", true)
	maps.Copy(attributes, settingsAttributes())

	resp.Schema = schema.Schema{
		MarkdownDescription: "The control plane of a cluster, from machines that wait in maintenance mode to a Kubernetes API that answers. " +
			"It configures the machines, bootstraps etcd exactly once, and waits until every member is healthy and every node is registered " +
			"(and Ready, unless `cni` is `none`).\n\nA create that was begun and could not finish is stored with its `phase` and a warning, and " +
			"the next apply goes on; use a postcondition on `phase` to make the run fail all the same.",
		Attributes: attributes,
	}
}

func (r *controlPlaneResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config controlPlaneModel

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

func (r *controlPlaneResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, state controlPlaneModel

	if req.Plan.Raw.IsNull() {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		resp.Diagnostics.Append(state.guardDestroy("talosop_control_plane")...)

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
		resp.Diagnostics.Append(guardReplace(ctx, req.Private, "talosop_control_plane", plan.Name)...)
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
func (r *controlPlaneResource) planCreate(ctx context.Context, plan *controlPlaneModel, pinned bool) diag.Diagnostics {
	if pinned {
		plan.VersionContract = contractOf(plan.TalosVersion)
	}

	p, diags := plan.pool(ctx)
	plan.apply(planCreate(p, cluster.DefaultPolicy()))

	return append(diags, plan.export(ctx)...)
}

func (r *controlPlaneResource) planUpdate(ctx context.Context, plan *controlPlaneModel, state controlPlaneModel, change edit, pinned bool) diag.Diagnostics {
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

// export fills the cluster handle from the model.
func (m *controlPlaneModel) export(ctx context.Context) diag.Diagnostics {
	return m.exportAs(ctx, m.handle(ctx))
}

func (r *controlPlaneResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan controlPlaneModel

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

func (r *controlPlaneResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state controlPlaneModel

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

func (r *controlPlaneResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state controlPlaneModel

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

		resp.Diagnostics.Append(result.settleUpdate(ctx, done, plan.poolModel, state.poolModel)...)
	}

	resp.Diagnostics.Append(result.export(ctx)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &result)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, protectionKey, result.protection())...)
}

func (r *controlPlaneResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state controlPlaneModel

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	ctx, cancel := state.deadline(ctx, opDelete, &resp.Diagnostics)
	defer cancel()

	p, diags := state.pool(ctx)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	resp.Diagnostics.Append(r.remove(maskSecrets(ctx, p.secrets), "talosop_control_plane", state.lifeModel, p)...)
}

func (r *controlPlaneResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	request, bundle, diags := readImport(req.ID, importOfControlPlane)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	ctx = maskSecrets(ctx, bundle.text)

	found, diags := r.recognise(ctx, request.Machines, bundle, cluster.ControlPlane)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	model, diags := controlPlaneFrom(ctx, request, bundle, found)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(r.adopt(ctx, &model.lifeModel, model.pool)...)

	if resp.Diagnostics.HasError() {
		return
	}

	resp.Diagnostics.Append(model.export(ctx)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}
