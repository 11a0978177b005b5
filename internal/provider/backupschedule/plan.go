package backupschedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// accessTimeout is how long a plan waits for a cluster to say whether Talos lets pods use its
// API.
const accessTimeout = 5 * time.Second

// ModifyPlan decides by configuration and state alone; what it asks the cluster is a warning.
func (r *etcdBackupScheduleResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var plan, state etcdBackupScheduleModel

	if req.Plan.Raw.IsNull() {
		return
	}

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)

	if req.State.Raw.IsNull() {
		plan.scheduleSeenModel = unseenSchedule()
		plan.forecast(ctx)

		resp.Diagnostics.Append(r.warnAccess(ctx, plan)...)
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)

		return
	}

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	if resp.Diagnostics.HasError() {
		return
	}

	if plan.ofAnother(ctx, state) {
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
		resp.Diagnostics.Append(tf.Announced("Snapshots will be deleted",
			fmt.Sprintf("retain of schedule %q lets %d of %d go from %s, the oldest first: %s.",
				state.Name.ValueString(), len(expired), state.Kept.ValueInt64(), plan.where(), tf.Describe(expired))))
	}

	plan.scheduleSeenModel = unseenSchedule()
	plan.ID, plan.KeyPrefix = state.ID, state.KeyPrefix
	plan.forecast(ctx)

	if plan.Retain.IsNull() {
		plan.Kept = types.Int64Null()
	}

	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// ofAnother is whether a plan is for another cluster than the one of state.
func (m etcdBackupScheduleModel) ofAnother(ctx context.Context, state etcdBackupScheduleModel) bool {
	wanted, _, _ := m.Spec(ctx)
	was, _, _ := state.Spec(ctx)

	return wanted.Mark != "" && was.Mark != "" && wanted.Mark != was.Mark
}

// forecast fills in what is known before an apply.
func (m *etcdBackupScheduleModel) forecast(ctx context.Context) {
	spec, unknown, diags := m.Spec(ctx)
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

// warnAccess warns of a create that Talos would let take no snapshot. A cluster that does not
// answer yet is no matter.
func (r *etcdBackupScheduleResource) warnAccess(ctx context.Context, plan etcdBackupScheduleModel) diag.Diagnostics {
	spec, unknown, _ := plan.Spec(ctx)
	if r.ProviderData == nil || unknown || spec.Mark == "" || plan.Cluster.IsUnknown() {
		return nil
	}

	// A phase that is not known yet is that of a cluster that is being made or changed.
	if handle, _ := machines.HandleFrom(ctx, plan.Cluster); handle.Phase.IsUnknown() || handle.Endpoint.IsUnknown() {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, accessTimeout)
	defer cancel()

	s, closing, diags := r.scheduler(ctx, plan)
	if diags.HasError() {
		return diags
	}

	defer closing()

	served, err := s.API.ServesKind(ctx, schedule.TalosAPI, schedule.TalosKind)

	switch {
	case errors.Is(err, kubernetes.ErrNoAnswer), served:
		return nil
	case err != nil:
		return diag.Diagnostics{tf.NotReady("It could not be asked whether Talos lets pods use its API", err.Error())}
	default:
		return diag.Diagnostics{tf.Announced("Talos does not let pods use its API yet",
			"The apply fails unless that changes before, in the same apply for instance. "+s.allow())}
	}
}
