package operations

import (
	"context"
	"maps"
	"reflect"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ resource.ResourceWithConfigure  = (*operationResource)(nil)
	_ resource.ResourceWithModifyPlan = (*operationResource)(nil)
)

// operationResource runs an operation when it is created, and whenever its triggers change. Its state records when;
// it never asks machines about it later.
type operationResource struct {
	providerdata.ConfiguredResource

	kind kind
}

// The attributes about the last run.
const (
	triggers   = "triggers"
	operations = "operations"
	left       = "left"
	finishedAt = "finished_at"
)

// outcome is the progress of an operation.
type outcome struct {
	// done are the finished steps, and left the machines that still need the operation.
	done, left []string
}

// Metadata implements the framework.
func (r *operationResource) Metadata(
	_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_" + r.kind.name
}

// Schema implements the framework.
func (r *operationResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := r.kind.arguments()
	maps.Copy(attributes, occasions(ctx))

	resp.Schema = schema.Schema{
		MarkdownDescription: r.kind.description + " It runs at create and whenever `triggers` change, never at destroy; " +
			"Terraform 1.14 also has an action of the same name.",
		Attributes: attributes,
	}
}

// occasions describe when the resource runs the operation, and its result.
func occasions(ctx context.Context) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"timeouts": tf.ChangeTimeouts(ctx, "Time for all machines together. Default: `30m`."),
		triggers: tf.OptionalStringMap("Values of your choice, such as a date or a version: any change runs the "+
			"operation again.",
			tf.MayBeBlank{}),
		operations: tf.ComputedStrings("In a plan: what the apply does to machines, if `machines` lists them. " +
			"Afterwards: what it did last."),
		left: tf.ComputedStrings("Machines that the last apply did not reach because it ended early. The next apply " +
			"continues with them."),
		finishedAt: tf.ComputedString("When the operation last finished, in RFC 3339; null while machines are `left`."),
	}
}

// ModifyPlan plans another run when a trigger changes, and the rest of an incomplete one.
func (r *operationResource) ModifyPlan(
	ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) {
	if req.Plan.Raw.IsNull() {
		return
	}

	asked, diags := r.kind.read(ctx, req.Plan)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("cluster"), &asked.cluster)...) // it is write-only

	runs := req.State.Raw.IsNull() || changed(req.State, req.Plan)
	unfinished := unfinishedIn(ctx, req.State, &resp.Diagnostics)

	switch {
	case resp.Diagnostics.HasError(), !runs && len(unfinished.Elements()) == 0:
		return
	case asked.occupied(ctx, &resp.Diagnostics), asked.inPods(&resp.Diagnostics):
		return
	case !runs:
		asked.machines = unfinished
	}

	asked.announce(&resp.Diagnostics)

	for name, value := range map[string]attr.Value{
		operations: asked.forecast(), left: types.ListUnknown(types.StringType), finishedAt: types.StringUnknown(),
	} {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root(name), value)...)
	}
}

// unfinishedIn are the machines that the last apply left; null without a state.
func unfinishedIn(ctx context.Context, state tfsdk.State, diags *diag.Diagnostics) types.List {
	unfinished := types.ListNull(types.StringType)
	if !state.Raw.IsNull() {
		diags.Append(state.GetAttribute(ctx, path.Root(left), &unfinished)...)
	}

	return unfinished
}

// changed reports whether the plan changes an argument that triggers the operation.
func changed(state tfsdk.State, plan tfsdk.Plan) bool {
	for _, name := range []string{triggers, "machines", "service", "path", "wipe", "user_disks"} {
		at := tftypes.NewAttributePath().WithAttributeName(name)

		before, _, err := tftypes.WalkAttributePath(state.Raw, at)
		if err != nil {
			continue // a kind without it
		}

		after, _, err := tftypes.WalkAttributePath(plan.Raw, at)
		if err != nil || !reflect.DeepEqual(before, after) {
			return true
		}
	}

	return false
}

// asked is the configured operation, and a context that ends with the timeout of an operation of the CLI.
func (r *operationResource) asked(
	ctx context.Context, config tfsdk.Config, op tf.Operation, diags *diag.Diagnostics,
) (context.Context, context.CancelFunc, asked) {
	var limits timeouts.Value

	a, more := r.kind.read(ctx, config)
	diags.Append(more...)
	diags.Append(config.GetAttribute(ctx, path.Root("timeouts"), &limits)...)

	ctx, cancel := tf.DeadlineOf(ctx, limits, op, diags)

	return ctx, cancel, a
}

// Create implements the framework: it runs the operation. If it ended early and had an effect, Create stores the
// rest with a warning: an error would taint the resource, and the next apply would start again.
func (r *operationResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	ctx, cancel, asked := r.asked(ctx, req.Config, tf.OpCreate, &resp.Diagnostics)
	defer cancel()

	if resp.Diagnostics.HasError() {
		return
	}

	resp.State.Raw = req.Plan.Raw

	out, diags := asked.run(ctx, r.ProviderData, toLog(ctx))
	if diags.HasError() && len(out.done) == 0 {
		resp.State.RemoveResource(ctx)
		resp.Diagnostics.Append(diags...)

		return
	}

	resp.Diagnostics.Append(asWarnings(diags)...)
	resp.Diagnostics.Append(out.put(ctx, req.Plan, &resp.State)...)
}

// Read keeps the state: no machine can report a past operation.
func (r *operationResource) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

// Update runs the operation when the plan says so.
func (r *operationResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var planned types.String

	ctx, cancel, asked := r.asked(ctx, req.Config, tf.OpUpdate, &resp.Diagnostics)
	defer cancel()

	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root(finishedAt), &planned)...)

	unfinished := unfinishedIn(ctx, req.State, &resp.Diagnostics)

	if resp.Diagnostics.HasError() {
		return
	}

	if !planned.IsUnknown() {
		resp.State.Raw = req.Plan.Raw

		return
	}

	if len(unfinished.Elements()) > 0 && !changed(req.State, req.Plan) {
		asked.machines = unfinished
	}

	out, diags := asked.run(ctx, r.ProviderData, toLog(ctx))
	resp.Diagnostics.Append(diags...)

	// Without any effect the state is unchanged, and planned again.
	if !diags.HasError() || len(out.done) > 0 {
		resp.State.Raw = req.Plan.Raw
		resp.Diagnostics.Append(out.put(ctx, req.Plan, &resp.State)...)
	}
}

// Delete removes the resource from state, and does nothing else.
func (r *operationResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {
}

// put stores the progress of an operation.
func (o outcome) put(ctx context.Context, plan tfsdk.Plan, state *tfsdk.State) diag.Diagnostics {
	var (
		diags   diag.Diagnostics
		planned types.List
	)

	diags.Append(plan.GetAttribute(ctx, path.Root(operations), &planned)...)

	if planned.IsUnknown() {
		diags.Append(state.SetAttribute(ctx, path.Root(operations), tf.TextList(o.done))...)
	}

	finished := types.StringNull()
	if len(o.left) == 0 {
		finished = types.StringValue(time.Now().UTC().Format(time.RFC3339))
	}

	diags.Append(state.SetAttribute(ctx, path.Root(left), tf.TextList(o.left))...)
	diags.Append(state.SetAttribute(ctx, path.Root(finishedAt), finished)...)

	return diags
}

// toLog writes events into the log.
func toLog(ctx context.Context) func(string) { return func(line string) { tf.LogInfo(ctx, line) } }

// asWarnings turns errors into warnings.
func asWarnings(diags diag.Diagnostics) diag.Diagnostics {
	var warnings diag.Diagnostics
	for _, d := range diags {
		warnings.Append(diag.NewWarningDiagnostic(d.Summary(), d.Detail()))
	}

	return warnings
}
