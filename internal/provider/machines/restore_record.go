package machines

import (
	"errors"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/restore"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// when is the recorded time; zero without one.
func (r restored) when() time.Time { return tf.TimeIn(r.At) }

// after is the planned record: unknown when a snapshot is to be restored, since the run may end before that.
func (r restored) after(p machineset.Set) restored {
	if p.Restores(r.From.ValueString()) {
		return restored{From: types.StringUnknown(), At: types.StringUnknown()}
	}

	return r
}

// restored is the record after a run.
func (r run) restored(before restored) restored {
	if r.want.RestoreFrom == "" || r.err != nil && !r.restores() && !r.foundRestored() {
		return before
	}

	return restored{From: types.StringValue(r.want.RestoreFrom), At: restoredAt(r.result.Snapshot)}
}

// restores reports whether the run restored the snapshot.
func (r run) restores() bool {
	return step.Restores(r.result.Done)
}

// foundRestored reports whether a running etcd started with a snapshot other than the recorded one. A bootstrap
// request alone proves nothing: it may still fail.
func (r run) foundRestored() bool {
	at := tf.TimeIn(restoredAt(r.result.Snapshot))

	return !at.IsZero() && !at.Equal(r.want.RestoredAt)
}

// tellOfRestore reports what a run took for its restored snapshot without restoring it: only the start of etcd can
// be observed, and not its snapshot.
func (r run) tellOfRestore() finding.List {
	if r.want.RestoreFrom == "" || r.restores() || !r.foundRestored() {
		return nil
	}

	return finding.List{restoredEarlier.With(finding.Args{
		"cluster": r.want.Name, "time": restoredAt(r.result.Snapshot).ValueString(), "snapshot": r.want.RestoreFrom,
	})}
}

// warnOfRestore warns of a restored snapshot that may be of another cluster, however the run ended: other secrets
// may be the reason.
func (r run) warnOfRestore() finding.List {
	if !r.anonymous || !r.restores() {
		return nil
	}

	return finding.List{anonymousSnapshot.With(finding.Args{"cluster": r.want.Name, "snapshot": r.want.RestoreFrom})}
}

// complete takes the time from an observation, when an interrupted run recorded only the snapshot.
func (r restored) complete(have cluster.Snapshot) restored {
	if !r.From.IsNull() && !r.From.IsUnknown() && r.At.IsNull() {
		r.At = restoredAt(have)
	}

	return r
}

// restoredAt is when the etcd of a snapshot started with the last restored one.
func restoredAt(have cluster.Snapshot) types.String {
	var last time.Time

	for _, m := range have.Machines {
		if m.RestoredAt.After(last) {
			last = m.RestoredAt
		}
	}

	return tf.TimeOrNull(last)
}

// unrestorable is why the snapshot of a run cannot be restored; nil when that was not the reason of its end.
func (r run) unrestorable() *restore.Error {
	var problem *restore.Error
	if errors.As(r.err, &problem) {
		return problem
	}

	return nil
}
