package backupschedule

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// ModifyPlan decides by configuration and state alone.
func (r *scheduleResource) ModifyPlan(
	ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) {
	var plan, state scheduleModel

	if req.Plan.Raw.IsNull() {
		return
	}

	create := req.State.Raw.IsNull()

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)

	if !create {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	}

	if resp.Diagnostics.HasError() {
		return
	}

	wanted, unknown, invalid := plan.spec(ctx, r.ProviderData)
	if was, _, _ := state.spec(ctx, r.ProviderData); wanted.Mark != "" && was.Mark != "" && wanted.Mark != was.Mark {
		resp.RequiresReplace.Append(path.Root("cluster").AtName("secrets"))
	}

	drift, _ := tf.KnownStrings(state.Drift)
	expired, _ := tf.KnownStrings(state.Expired)

	// The framework marked what is computed as unknown when the configuration differs.
	if req.Plan.Raw.Equal(req.State.Raw) && len(drift)+len(expired) == 0 {
		return
	}

	if len(expired) > 0 && !plan.Retain.IsNull() {
		resp.Diagnostics.Append(tf.Warn("Snapshots will be deleted",
			fmt.Sprintf("retain of schedule %q lets %d of %d go from %s, the oldest first: %s.",
				state.Name.ValueString(), len(expired), state.Kept.ValueInt64(), plan.place(), finding.Describe(expired))))
	}

	plan.seenModel = unseen()

	if !unknown && !invalid.HasError() {
		var known seenModel

		known.fill(wanted, observed{})
		plan.ID, plan.KeyPrefix = known.ID, known.KeyPrefix

		if wanted.Suspend {
			plan.NextRun = timetypes.NewRFC3339Null()
		}
	}

	if !create && plan.Retain.IsNull() {
		plan.Kept = types.Int64Null()
	}

	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}
