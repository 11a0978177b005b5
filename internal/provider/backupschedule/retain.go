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
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	storepkg "github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// talos-backup deletes nothing, so that snapshots are thinned out from here, with credentials of
// the provider: the key in the cluster need not be allowed to.

func s3Credentials(c schedule.Credentials) s3.Credentials {
	return s3.Credentials{AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken}
}

// snapshotsOf opens the bucket of a schedule and lists what is in its folder, within LookLimit.
func (r *etcdBackupScheduleResource) snapshotsOf(
	ctx context.Context, s schedule.Spec, m etcdBackupScheduleModel,
) (context.Context, store.Store, []store.Object, error) {
	from := storepkg.PlaceOf(m.S3, types.ObjectNull(nil))
	from.Bucket.Credentials = s3.Credentials{}

	ctx, opened, err := from.Open(ctx, r.Stores)
	if err != nil {
		return ctx, nil, nil, err
	}

	bounded, cancel := context.WithTimeout(ctx, providerdata.LookLimit)
	defer cancel()

	objects, err := opened.List(bounded, s.Folder()+"/")

	return ctx, opened, objects, err
}

// count looks for what retain lets go, for a refresh.
func (r *etcdBackupScheduleResource) count(
	ctx context.Context, s schedule.Spec, m *etcdBackupScheduleModel,
) diag.Diagnostics {
	m.Kept, m.Expired = types.Int64Null(), tf.TextList(nil)

	retention, ok := m.retention(ctx)
	if !ok {
		return nil
	}

	_, _, objects, err := r.snapshotsOf(ctx, s, *m)
	if err != nil {
		return diag.Diagnostics{notCounted(s, *m, err)}
	}

	expired, total := s.Expired(retention, objects, time.Now())
	m.Kept, m.Expired = types.Int64Value(int64(total)), tf.TextList(expired)

	return nil
}

func notCounted(s schedule.Spec, m etcdBackupScheduleModel, err error) diag.Diagnostic {
	from := storepkg.PlaceOf(m.S3, types.ObjectNull(nil))
	cause, next := from.Diagnosis(err)

	return tf.Warn("Unable to list snapshots of a schedule", finding.Report{
		Attempted: fmt.Sprintf("list in %s the snapshots of schedule %q that retain lets go", from, s.Name),
		Cause:     cause, Now: []string{"no snapshot is deleted"},
		Next: strings.TrimSpace(next + " Give credentials in s3 of the provider, or in the environment, that may list and " +
			"delete there; or remove retain, and give the bucket a lifecycle rule."),
	}.String())
}

// thinOut deletes what retain lets go. Where retain is as it was, that is what the plan has
// shown, and is let go still.
func (r *etcdBackupScheduleResource) thinOut(
	ctx context.Context, s schedule.Spec, plan, state *etcdBackupScheduleModel,
) diag.Diagnostics {
	plan.Kept = types.Int64Null()

	retention, ok := plan.retention(ctx)
	if !ok {
		return nil
	}

	ctx, opened, objects, err := r.snapshotsOf(ctx, s, *plan)
	if err != nil {
		return diag.Diagnostics{notCounted(s, *plan, err)}
	}

	expired, left := s.Expired(retention, objects, time.Now())

	if state != nil && plan.Retain.Equal(state.Retain) {
		shown, _ := tf.KnownStrings(state.Expired)
		expired = slices.DeleteFunc(expired, func(key string) bool { return !slices.Contains(shown, key) })
	}

	for _, key := range expired {
		// The oldest first: after an error nothing newer goes.
		if err = opened.Delete(ctx, key); err != nil {
			break
		}

		left--
	}

	plan.Kept = types.Int64Value(int64(left))

	if err != nil {
		return diag.Diagnostics{tf.Warn("Unable to delete expired snapshots", finding.Report{
			Attempted: fmt.Sprintf("delete %s", finding.Describe(expired)), Cause: strings.Split(err.Error(), "\n"),
			Next: "The next plan shows those that are left in `expired`.",
		}.String())}
	}

	return nil
}
