package provider

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

// TestRecordOfARestore: what a run restored is on record once etcd has begun with it, however
// the run ended, and not before.
func TestRecordOfARestore(t *testing.T) {
	t.Parallel()

	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	older := restored{from: types.StringValue("older.db"), at: timeOrNull(began.Add(-time.Hour))}

	for name, c := range map[string]struct {
		done    []cluster.Step
		machine cluster.MachineState
		err     error
		want    restored
		told    bool
	}{
		"restored": {
			done: []cluster.Step{cluster.Restore{Machine: "cp-1"}}, machine: cluster.MachineState{RestoredAt: began},
			want: restored{types.StringValue("newer.db"), timeOrNull(began)},
		},
		"restored, then stopped before anything was seen": {
			done: []cluster.Step{cluster.Restore{Machine: "cp-1"}}, err: context.Canceled,
			want: restored{types.StringValue("newer.db"), types.StringNull()},
		},
		"stopped while it was restored": {
			machine: cluster.MachineState{BootstrapRequested: true}, err: context.DeadlineExceeded, want: older,
		},
		"found restored": {
			machine: cluster.MachineState{RestoredAt: began}, want: restored{types.StringValue("newer.db"), timeOrNull(began)}, told: true,
		},
		"the etcd on record": {
			machine: cluster.MachineState{RestoredAt: began.Add(-time.Hour)}, err: context.Canceled, want: older,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := run{
				want: cluster.Spec{Name: "prod", RestoreFrom: "newer.db", RestoredAt: older.when()}, err: c.err,
				result: lifecycle.Result{Done: c.done, Snapshot: cluster.Snapshot{Machines: map[string]cluster.MachineState{"cp-1": c.machine}}},
			}

			if got := r.restored(older); got != c.want {
				t.Errorf("the record is %v, want %v", got, c.want)
			}

			if told := len(r.tellOfRestore()) > 0; told != c.told {
				t.Errorf("a warning: %t, want %t", told, c.told)
			}
		})
	}

	r := restored{from: types.StringValue("newer.db"), at: types.StringNull()}
	have := cluster.Snapshot{Machines: map[string]cluster.MachineState{"cp-1": {RestoredAt: began}}}

	if got := r.complete(have); got.when() != began {
		t.Errorf("completed: %v", got)
	}

	if got := older.complete(have); got != older {
		t.Errorf("a record that is complete became %v", got)
	}
}
