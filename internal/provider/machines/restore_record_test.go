package machines

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/restore"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// TestRestore_isRecordedOnceEtcdBegan: a run records its restore once etcd has started from it, however the run
// ended, and not before.
func TestRestore_isRecordedOnceEtcdBegan(t *testing.T) {
	t.Parallel()

	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	older := restored{From: types.StringValue("older.db"), At: tf.TimeOrNull(began.Add(-time.Hour))}

	for name, c := range map[string]struct {
		done    []step.Step
		machine step.MachineState
		err     error
		want    restored
		warns   bool
	}{
		"restored": {
			done: []step.Step{step.Restore{Machine: "cp-1"}}, machine: step.MachineState{RestoredAt: began},
			want: restored{types.StringValue("newer.db"), tf.TimeOrNull(began)},
		},
		"restored, then stopped before anything was seen": {
			done: []step.Step{step.Restore{Machine: "cp-1"}}, err: context.Canceled,
			want: restored{types.StringValue("newer.db"), types.StringNull()},
		},
		"stopped while it was restored": {
			machine: step.MachineState{BootstrapRequested: true}, err: context.DeadlineExceeded, want: older,
		},
		"found restored": {
			machine: step.MachineState{RestoredAt: began},
			want:    restored{types.StringValue("newer.db"), tf.TimeOrNull(began)}, warns: true,
		},
		"the etcd on record": {
			machine: step.MachineState{RestoredAt: began.Add(-time.Hour)}, err: context.Canceled, want: older,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := run{began: true,
				want: cluster.Spec{Name: "prod", RestoreFrom: "newer.db", RestoredAt: older.when()}, err: c.err,
				result: lifecycle.Result{Done: c.done,
					Snapshot: cluster.Snapshot{Machines: map[string]step.MachineState{"cp-1": c.machine}}},
			}

			if got := r.restored(older); got != c.want {
				t.Errorf("the record is %v, want %v", got, c.want)
			}

			if warns := len(r.tellOfRestore()) > 0; warns != c.warns {
				t.Errorf("a warning: %t, want %t", warns, c.warns)
			}
		})
	}

	r := restored{From: types.StringValue("newer.db"), At: types.StringNull()}
	have := cluster.Snapshot{Machines: map[string]step.MachineState{"cp-1": {RestoredAt: began}}}

	if got := r.complete(have); got.when() != began {
		t.Errorf("completed: %v", got)
	}

	if got := older.complete(have); got != older {
		t.Errorf("a record that is complete became %v", got)
	}
}

// A warning reports a restored snapshot of an unknown cluster, however the run ended.
func TestRestore_warnsOfASnapshotOfUnknownCluster(t *testing.T) {
	t.Parallel()

	marked := "etcd-snapshot-2026-01-02T03-00-00Z-0123456789abcdef-abcdef.db"

	for name, c := range map[string]struct {
		From    string
		fetched *backup.Snapshot
		done    []step.Step
		warns   bool
	}{
		"neither mark nor record": {"newer.db", &backup.Snapshot{}, []step.Step{step.Restore{}}, true},
		"a mark":                  {marked, &backup.Snapshot{}, []step.Step{step.Restore{}}, false},
		"a record": {"newer.db", &backup.Snapshot{Record: &backup.Record{}}, []step.Step{step.Restore{}},
			false},
		"not restored": {"newer.db", &backup.Snapshot{}, nil, false},
		"not fetched":  {"newer.db", nil, nil, false},
	} {
		snapshot := &restore.Restoration{Set: machineset.Set{Restore: machineset.Restoration{From: c.From}}, Fetched: c.fetched}
		s := &session{want: cluster.Spec{Name: "prod", RestoreFrom: c.From}, platform: metal{},
			runner: &lifecycle.Runner{Restoration: snapshot}}
		ended := s.ended(t.Context(), machineset.PriorState{}, lifecycle.Result{Done: c.done}, context.Canceled)

		if warns := len(ended.warnOfRestore()) > 0; warns != c.warns {
			t.Errorf("%s: a warning: %t, want %t", name, warns, c.warns)
		}
	}
}
