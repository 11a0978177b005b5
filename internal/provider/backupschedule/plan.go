package backupschedule

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// ModifyPlan decides by configuration and state alone.
func (r *etcdBackupScheduleResource) ModifyPlan(
	ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) {
	var plan, state etcdBackupScheduleModel

	if req.Plan.Raw.IsNull() {
		return
	}

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)

	if req.State.Raw.IsNull() {
		plan.scheduleSeenModel = unseenSchedule()
		plan.forecast(ctx, r.ProviderData)

		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)

		return
	}

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	if resp.Diagnostics.HasError() {
		return
	}

	if plan.ofAnother(ctx, r.ProviderData, state) {
		resp.RequiresReplace.Append(path.Root("cluster").AtName("secrets"))
	}

	// The framework marked what is computed as unknown when the configuration differs.
	changed := !req.Plan.Raw.Equal(req.State.Raw)
	drift, _ := tf.KnownStrings(state.Drift)
	expired, _ := tf.KnownStrings(state.Expired)

	if !changed && len(drift)+len(expired) == 0 {
		return
	}

	if len(expired) > 0 && !plan.Retain.IsNull() {
		resp.Diagnostics.Append(tf.Warn("Snapshots will be deleted",
			fmt.Sprintf("retain of schedule %q lets %d of %d go from %s, the oldest first: %s.",
				state.Name.ValueString(), len(expired), state.Kept.ValueInt64(), plan.where(), finding.Describe(expired))))
	}

	plan.scheduleSeenModel = unseenSchedule()
	plan.forecast(ctx, r.ProviderData)

	if plan.Retain.IsNull() {
		plan.Kept = types.Int64Null()
	}

	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// ofAnother is whether a plan is for another cluster than the one of state.
func (m etcdBackupScheduleModel) ofAnother(
	ctx context.Context, data *providerdata.ProviderData, state etcdBackupScheduleModel,
) bool {
	wanted, _, _ := m.Spec(ctx, data)
	was, _, _ := state.Spec(ctx, data)

	return wanted.Mark != "" && was.Mark != "" && wanted.Mark != was.Mark
}

// forecast fills in what is known before an apply.
func (m *etcdBackupScheduleModel) forecast(ctx context.Context, data *providerdata.ProviderData) {
	spec, unknown, diags := m.Spec(ctx, data)
	if unknown || diags.HasError() {
		return
	}

	planned := *m
	planned.Fill(spec, scheduleSeen{})

	m.ID, m.KeyPrefix = planned.ID, planned.KeyPrefix

	if spec.Suspend {
		m.NextRun = timetypes.NewRFC3339Null()
	}
}

// where names the bucket.
func (m etcdBackupScheduleModel) where() string {
	return store.PlaceOf(m.S3, types.ObjectNull(nil)).String()
}
