package backupschedule

import (
	"context"
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

// talos-backup deletes nothing. The provider deletes old snapshots with its own credentials: the key in the cluster
// needs no such permission.

// place is the bucket of a schedule, without the key of the cluster.
func (m scheduleModel) place() store.Place {
	place := store.PlaceOf(m.S3, types.ObjectNull(nil))
	place.Bucket.Credentials = s3.Credentials{}

	return place
}

// thinOut deletes the snapshots that retain expires, as far as that is allowed, and reports what is left.
func (r *scheduleResource) thinOut(
	ctx context.Context, s schedule.Spec, m *scheduleModel, mayDelete func(key string) bool,
) diag.Diagnostics {
	m.Kept, m.Expired = types.Int64Null(), tf.TextList(nil)

	retention := etcdbackup.RetentionOf(ctx, m.Retain)
	if retention.Count == 0 {
		return nil
	}

	ctx, opened, err := m.place().Open(ctx, r.Stores)

	var stored []backupstore.Object

	if err == nil {
		looking, cancel := context.WithTimeout(ctx, providerdata.LookLimit)
		stored, err = opened.List(looking, s.Folder()+"/")

		cancel()
	}

	if err != nil {
		causes, solution := m.place().Diagnosis(err)

		return diag.Diagnostics{tf.Diagnostic(snapshotsNotListed.With(
			finding.Args{"name": s.Name, "place": m.place(), "causes": causes, "solution": solution}))}
	}

	expired, kept := s.Expired(retention, stored, time.Now())
	m.Kept, m.Expired = types.Int64Value(int64(kept)), tf.TextList(expired)

	expired = slices.DeleteFunc(expired, func(key string) bool { return !mayDelete(key) })

	// The oldest first: after an error no newer snapshot is deleted.
	for i, key := range expired {
		if err := opened.Delete(ctx, key); err != nil {
			return diag.Diagnostics{tf.Diagnostic(snapshotsNotDeleted.With(
				finding.Args{"name": s.Name, "snapshots": expired, "causes": strings.Split(err.Error(), "\n")}))}
		}

		m.Kept = types.Int64Value(int64(kept - i - 1))
	}

	return nil
}
