// Package unmanagedworkers is the resource talosop_unmanaged_workers: the configuration of machines that have no
// resource of their own, such as those of an autoscaler.
package unmanagedworkers

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ resource.ResourceWithConfigure      = (*workers)(nil)
	_ resource.ResourceWithValidateConfig = (*workers)(nil)
	_ resource.ResourceWithModifyPlan     = (*workers)(nil)
)

// NewResource is the constructor of the resource.
func NewResource() resource.Resource { return &workers{} }

// workers is the machines that its selector matches. A create only observes them: a plan lists what is done to a
// machine, and the plan of a create knows none.
type workers struct {
	providerdata.ConfiguredResource
}

func (w *workers) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_unmanaged_workers"
}

func (w *workers) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Keeps the configuration of workers that have no other talosop resource, such as those of an " +
			"autoscaler, up to date ([guide](../guides/autoscaling)). A create only observes them; later plans list each " +
			"node that differs, and their applies configure it within a budget, drained where it reboots. It changes neither " +
			"control planes nor Talos versions, and a destroy leaves all machines as they are.",
		Attributes: attributes(ctx),
	}
}

// ValidateConfig implements resource.ResourceWithValidateConfig.
func (w *workers) ValidateConfig(
	ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse,
) {
	var config model

	if tf.ReadForValidation(ctx, req.Config, &config, &resp.Diagnostics) {
		resp.Diagnostics.Append(config.validate(ctx, w.ProviderData)...)
	}
}

// ModifyPlan plans what an apply does to the machines that the last refresh observed.
func (w *workers) ModifyPlan(
	ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) {
	if req.Plan.Raw.IsNull() {
		return
	}

	var plan model

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)

	last, diags := recordedIn(ctx, req.Private)
	resp.Diagnostics.Append(append(diags, plan.readHooks(ctx, req.Private)...)...)

	if resp.Diagnostics.HasError() {
		return
	}

	if req.State.Raw.IsNull() {
		plan.observesOnly()
	} else {
		changed := !req.Plan.Raw.Equal(req.State.Raw)
		resp.Diagnostics.Append(plan.forecast(ctx, w.ProviderData, last, changed)...)
	}

	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// Create implements resource.Resource: it observes the machines.
func (w *workers) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan model

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)

	ctx, cancel := tf.DeadlineOf(ctx, plan.Timeouts, tf.OpCreate, &resp.Diagnostics)
	defer cancel()

	if resp.Diagnostics.HasError() {
		return
	}

	seen, diags := w.look(ctx, &plan, nil)
	resp.Diagnostics.Append(diags...)

	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
		resp.Diagnostics.Append(store(ctx, resp.Private, seen)...)
		resp.Diagnostics.Append(plan.storeHooks(ctx, resp.Private)...)
	}
}

// Read implements resource.Resource: it observes the machines.
func (w *workers) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state model

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	last, diags := recordedIn(ctx, req.Private)
	resp.Diagnostics.Append(append(diags, state.readHooks(ctx, req.Private)...)...)

	ctx, cancel := tf.DeadlineOf(ctx, state.Timeouts, tf.OpRead, &resp.Diagnostics)
	defer cancel()

	if resp.Diagnostics.HasError() {
		return
	}

	if w.StateLacksSecrets(ctx, state.Cluster) {
		resp.Diagnostics.Append(tf.Diagnostic(providerdata.NotReadWithoutSecrets(state.name(ctx))))

		return
	}

	state.forgetPlan()

	seen, diags := w.look(ctx, &state, last)
	resp.Diagnostics.Append(diags...)

	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
		resp.Diagnostics.Append(store(ctx, resp.Private, seen)...)
		resp.Diagnostics.Append(state.storeHooks(ctx, resp.Private)...)
	}
}

// Update implements resource.Resource: it does what the plan lists, and observes the machines afterward, also when it
// ends early. What is left is in the next plan.
func (w *workers) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan model

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)

	last, diags := recordedIn(ctx, req.Private)
	resp.Diagnostics.Append(append(diags, plan.readHooks(ctx, req.Private)...)...)

	ctx, cancel := tf.DeadlineOf(ctx, plan.Timeouts, tf.OpUpdate, &resp.Diagnostics)
	defer cancel()

	if resp.Diagnostics.HasError() {
		return
	}

	resp.Diagnostics.Append(w.configure(ctx, &plan, last)...)

	// A run that ended early has no time left.
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer end()

	seen, diags := w.look(ctx, &plan, last)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(store(ctx, resp.Private, seen)...)
	resp.Diagnostics.Append(plan.storeHooks(ctx, resp.Private)...)
}

// lookTimeout is how long the observation after a run may take.
const lookTimeout = 2 * time.Minute

// Delete implements resource.Resource: it only forgets the machines.
func (w *workers) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}
