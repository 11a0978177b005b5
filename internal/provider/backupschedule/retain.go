package backupschedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	backupstore "github.com/talosop/terraform-provider-talosop/internal/backup/store"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/etcdbackup"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// talos-backup deletes nothing, so that snapshots are thinned out from here, with credentials of the provider: the key
// in the cluster need not be allowed to.

// place is the bucket of a schedule. The key of the cluster is not in it.
func (m scheduleModel) place() store.Place {
	place := store.PlaceOf(m.S3, types.ObjectNull(nil))
	place.Bucket.Credentials = s3.Credentials{}

	return place
}

// count looks for what retain lets go and stores what it finds. The store is nil when retain says nothing, and when the
// bucket does not answer.
func (r *scheduleResource) count(
	ctx context.Context, s schedule.Spec, m *scheduleModel,
) (context.Context, backupstore.Store, []string, diag.Diagnostics) {
	m.Kept, m.Expired = types.Int64Null(), tf.TextList(nil)

	retention := etcdbackup.RetentionOf(ctx, m.Retain)
	if retention.Count == 0 {
		return ctx, nil, nil, nil
	}

	place := m.place()

	ctx, opened, err := place.Open(ctx, r.Stores)
	if err != nil {
		return ctx, nil, nil, notCounted(s, place, err)
	}

	bounded, cancel := context.WithTimeout(ctx, providerdata.LookLimit)
	defer cancel()

	objects, err := opened.List(bounded, s.Folder()+"/")
	if err != nil {
		return ctx, nil, nil, notCounted(s, place, err)
	}

	expired, total := s.Expired(retention, objects, time.Now())
	m.Kept, m.Expired = types.Int64Value(int64(total)), tf.TextList(expired)

	return ctx, opened, expired, nil
}

func notCounted(s schedule.Spec, place store.Place, err error) diag.Diagnostics {
	cause, next := place.Diagnosis(err)

	return diag.Diagnostics{tf.Warn("Unable to list snapshots of a schedule", finding.Report{
		Attempted: fmt.Sprintf("list in %s the snapshots of schedule %q that retain lets go", place, s.Name),
		Cause:     cause, Now: []string{"no snapshot is deleted"},
		Next: strings.TrimSpace(next + " Give credentials in s3 of the provider, or in the environment, that may list and " +
			"delete there; or remove retain, and give the bucket a lifecycle rule."),
	}.String())}
}

// thinOut deletes what retain lets go. Where retain is as it was, only what the plan has shown is deleted.
func (r *scheduleResource) thinOut(ctx context.Context, s schedule.Spec, plan, state *scheduleModel) diag.Diagnostics {
	ctx, opened, expired, diags := r.count(ctx, s, plan)

	if state != nil && plan.Retain.Equal(state.Retain) {
		shown, _ := tf.KnownStrings(state.Expired)
		expired = slices.DeleteFunc(expired, func(key string) bool { return !slices.Contains(shown, key) })
	}

	// The oldest first: after an error nothing newer goes.
	for _, key := range expired {
		if err := opened.Delete(ctx, key); err != nil {
			return append(diags, tf.Warn("Unable to delete expired snapshots", finding.Report{
				Attempted: fmt.Sprintf("delete %s", finding.Describe(expired)), Cause: strings.Split(err.Error(), "\n"),
				Next: "The next plan shows those that are left in `expired`.",
			}.String()))
		}

		plan.Kept = types.Int64Value(plan.Kept.ValueInt64() - 1)
	}

	return diags
}
