package operations

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ resource.ResourceWithConfigure  = (*leaveResource)(nil)
	_ resource.ResourceWithModifyPlan = (*leaveResource)(nil)
)

// leaveResource lets a machine leave its cluster when it is destroyed or replaced. It refers to the VM of the machine,
// so that a CLI destroys it first. Its create and update only store what a destroy needs.
type leaveResource struct {
	providerdata.ConfiguredResource

	kind kind
}

// Metadata implements the framework.
func (r *leaveResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + r.kind.name
}

// Schema implements the framework.
func (r *leaveResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := r.kind.arguments()
	maps.Copy(attributes, map[string]schema.Attribute{
		"cluster": clusterhandle.KeptObject(tf.RequiredObject("Handle of the cluster: `cluster` of "+
			"`talosop_control_plane` or `talosop_cluster`, or an object that you write with at least `name`, `endpoint` and "+
			"`secrets`. State keeps it for the destroy.", clusterhandle.AccessAttributes()),
			"talos_version", "kubernetes_version", "version_contract", "phase"),
		triggers: tf.OptionalStringMap("What identifies the VM, such as its ID: with another VM at the same address, the "+
			"machine of the former one leaves."+leavesOnChange, tf.MayBeBlank{}),
		"timeouts": tf.DestroyTimeouts(ctx, "Time until the machine has left, including waits for other machines. "+
			"Default: `30m`."),
	})

	resp.Schema = schema.Schema{
		MarkdownDescription: r.kind.description + " It happens when the resource is destroyed or replaced; create " +
			"and update touch no machine (Terraform 1.16 also has an action of this name).",
		Attributes: attributes,
	}
}

// ModifyPlan replaces the resource when its machine changes, and warns when a machine leaves.
func (r *leaveResource) ModifyPlan(
	ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) {
	if !req.Plan.Raw.IsNull() {
		asked, diags := r.kind.read(ctx, req.Plan)
		resp.Diagnostics.Append(diags...)

		handle, diags := clusterhandle.AccessFrom(ctx, asked.cluster)
		resp.Diagnostics.Append(diags...)
		resp.Diagnostics.Append(tf.Diagnostics(asked.refuseContainers(handle.Mode))...)
	}

	if req.State.Raw.IsNull() {
		return
	}

	leaves := req.Plan.Raw.IsNull()

	for _, name := range []string{"machine", "uuid", triggers} {
		if !leaves && differs(req.State, req.Plan, name) {
			resp.RequiresReplace.Append(path.Root(name))
		}
	}

	if leaves || len(resp.RequiresReplace) > 0 {
		r.warn(ctx, req.State, resp)
	}
}

// differs reports whether a plan changes an attribute.
func differs(state tfsdk.State, plan tfsdk.Plan, name string) bool {
	at := tftypes.NewAttributePath().WithAttributeName(name)
	before, _, _ := tftypes.WalkAttributePath(state.Raw, at)
	after, _, _ := tftypes.WalkAttributePath(plan.Raw, at)

	was, known := before.(tftypes.Value)
	is, planned := after.(tftypes.Value)

	return !known || !planned || !was.Equal(is)
}

// warn reports that the machine of a state leaves.
func (r *leaveResource) warn(ctx context.Context, state tfsdk.State, resp *resource.ModifyPlanResponse) {
	asked, diags := r.kind.read(ctx, state)
	handle, more := clusterhandle.AccessFrom(ctx, asked.cluster)
	resp.Diagnostics.Append(append(diags, more...)...)

	then := "resets it"
	if asked.leaver.onLeave.ValueString() == onLeaveShutdown {
		then = "shuts it down"
	}

	resp.Diagnostics.Append(tf.Diagnostic(machineLeaves.With(finding.Args{
		"machine": asked.leaver.machine.ValueString(), "cluster": handle.Name.ValueString(),
		"drains": asked.evacuation().Drain,
		"then":   then})))
}

// Create stores what the destroy needs.
func (r *leaveResource) Create(_ context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	resp.State.Raw = req.Plan.Raw
}

// Read keeps the state: it is about what a destroy does.
func (r *leaveResource) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

// Update stores what the destroy needs.
func (r *leaveResource) Update(_ context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	resp.State.Raw = req.Plan.Raw
}

// Delete lets the machine leave. After an error it stays in state, and so does its VM.
func (r *leaveResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var limits timeouts.Value

	asked, diags := r.kind.read(ctx, req.State)
	diags.Append(req.State.GetAttribute(ctx, path.Root("timeouts"), &limits)...)

	ctx, cancel := tf.DeadlineOf(ctx, limits, tf.OpDelete, &diags)
	defer cancel()

	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}

	_, diags = asked.run(ctx, r.ProviderData, toLog(ctx))
	resp.Diagnostics.Append(diags...)
}
