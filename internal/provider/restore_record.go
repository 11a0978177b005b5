package provider

import (
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

// restored is the record of the snapshot that the etcd of a cluster began with. A snapshot
// is only ever restored while it is not the one on record.
type restored struct {
	// from names it, and at is when the etcd of a machine began with it, by that machine's
	// clock.
	from, at types.String
}

// when is the time on record; zero when there is none.
func (r restored) when() time.Time { return timeIn(r.at) }

// after is what a plan says of the record: unknown where a snapshot is to be restored, since
// the run may end before that.
func (r restoration) after(before restored) restored {
	if r.unknown || r.asked(before.from.ValueString()) != "" {
		return restored{from: types.StringUnknown(), at: types.StringUnknown()}
	}

	return before
}

// restored is the record after a run.
func (r run) restored(before restored) restored {
	if r.want.RestoreFrom == "" || !r.began() {
		return before
	}

	return restored{from: types.StringValue(r.want.RestoreFrom), at: restoredAt(r.result.Snapshot)}
}

// began reports whether etcd has begun with the snapshot that a run was to restore. Where
// its answer was lost, what is seen of etcd proves it: the planner refuses to go on where
// another etcd lives.
func (r run) began() bool {
	var refused *lifecycle.RefusedError

	restores := func(s cluster.Step) bool { _, is := s.(cluster.Restore); return is }

	return r.err == nil || slices.ContainsFunc(r.result.Done, restores) || r.sawEtcd() && !errors.As(r.err, &refused)
}

// restoredAt is when the etcd of a snapshot began with the last restored one.
func restoredAt(have cluster.Snapshot) types.String {
	var last time.Time

	for _, m := range have.Machines {
		if m.RestoredAt.After(last) {
			last = m.RestoredAt
		}
	}

	return timeOrNull(last)
}

// timeOrNull is a time as it is in state, and timeIn reads it; the zero value is null.
func timeOrNull(t time.Time) types.String {
	if t.IsZero() {
		return types.StringNull()
	}

	return types.StringValue(t.UTC().Format(time.RFC3339Nano))
}

func timeIn(text types.String) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text.ValueString())
	if err != nil {
		return time.Time{}
	}

	return t
}

// unrestorable is why the snapshot of a run cannot be restored; nil when that did not end it.
func (r run) unrestorable() *restoreError {
	var problem *restoreError
	if errors.As(r.err, &problem) {
		return problem
	}

	return nil
}
