package machineset

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// A refresh records why machines are not ready, and keeps the record of those that did not answer.
func TestWithTroubles(t *testing.T) {
	t.Parallel()

	notReady := func(found string) record.Difference { return record.Difference{Kind: record.NotReady, Found: found} }
	etcd := func(found string) record.Difference {
		return record.Difference{Kind: record.EtcdNotHealthy, Found: found}
	}
	ofEtcd := health.Trouble{Condition: health.EtcdQuorum, Reason: "no quorum"}

	for name, test := range map[string]struct {
		drift    map[string]record.Drift
		recorded record.Drift // of w-1
		troubles []health.Trouble
		removed  []cluster.Machine
		want     map[string]record.Drift
	}{
		"nothing":  {want: map[string]record.Drift{}},
		"answered": {drift: map[string]record.Drift{"w-1": nil}, want: map[string]record.Drift{"w-1": nil}},
		"a machine": {drift: map[string]record.Drift{"w-1": nil}, troubles: []health.Trouble{{Machine: "w-1", Reason: "no disk"}},
			want: map[string]record.Drift{"w-1": {notReady("no disk")}}},
		"reported otherwise": {drift: map[string]record.Drift{"w-1": {{Kind: record.NoNode}}}, troubles: []health.Trouble{{Machine: "w-1", Reason: "no node"}},
			want: map[string]record.Drift{"w-1": {{Kind: record.NoNode}}}},
		"etcd": {troubles: []health.Trouble{ofEtcd, {Condition: health.EtcdNoAlarms, Reason: "an alarm"}},
			want: map[string]record.Drift{"cp-1": {etcd("no quorum")}}},
		"the cluster": {troubles: []health.Trouble{{Condition: "KubernetesAPI", Reason: "silent"}}, want: map[string]record.Drift{}},
		"silent, with drift": {recorded: record.Drift{{Kind: record.TalosDiffers}, notReady("before"), etcd("before")},
			want: map[string]record.Drift{"w-1": {{Kind: record.TalosDiffers}}}},
		"one that leaves": {removed: []cluster.Machine{{Name: "w-9", Role: step.Worker}},
			want: map[string]record.Drift{"w-9": {notReady("is booting")}}},
	} {
		want, have := withoutDrift()
		want.Removed = test.removed
		have.Machines["w-9"] = step.MachineState{Access: step.Member, Stage: step.StageBooting}

		drift := test.drift
		if drift == nil {
			drift = map[string]record.Drift{}
		}

		recorded := PriorState{Record: Record{Seen: record.Machines{"w-1": {Drift: test.recorded}}}}
		got := WithTroubles(drift, want, have, recorded, test.troubles)

		same(t, name, got, test.want)
	}
}

func TestWarnOfTroubles(t *testing.T) {
	t.Parallel()

	troubles := []health.Trouble{{Machine: "a", Reason: "no disk"}, {Condition: "EtcdQuorum", Reason: "lost"}, {Machine: "b", Reason: "no disk"}}
	same(t, "lines", LinesOfTroubles(troubles), []string{"EtcdQuorum: lost", "a and b: no disk"})
	expect(t, "some", WarnOfTroubles(cluster.Spec{Name: "prod"}, cluster.Snapshot{}, troubles), []string{"Warning: cluster_unhealthy"},
		"machines: a | b\nproblems: EtcdQuorum: lost | a and b: no disk\n")
	expect(t, "none", WarnOfTroubles(cluster.Spec{}, cluster.Snapshot{}, nil), nil)
}

// An apply waits for what has no step of its own.
func TestWaits(t *testing.T) {
	t.Parallel()

	sick := record.Drift{{Kind: record.NotReady, Found: "no disk"}}
	etcd := func(found string) record.Machine {
		return record.Machine{Drift: record.Drift{{Kind: record.EtcdNotHealthy, Found: found}}}
	}
	p := aSet(t, controlPlanes(2), workers("batch", 1))

	for name, test := range map[string]struct {
		seen  record.Machines
		steps []step.Step
		want  []string
	}{
		"nothing":          {},
		"machines":         {seen: record.Machines{"cp-2": {Drift: sick}, "batch/w-1": {Drift: sick}}, want: []string{"wait for batch/w-1, cp-2"}},
		"with a step":      {seen: record.Machines{"cp-2": {Drift: sick}}, steps: []step.Step{step.Uncordon{Machine: "cp-2"}}},
		"another step":     {seen: record.Machines{"cp-2": {Drift: sick}}, steps: []step.Step{step.Uncordon{Machine: "cp-1"}}, want: []string{"wait for cp-2"}},
		"etcd":             {seen: record.Machines{"cp-1": etcd("an alarm"), "cp-2": etcd("another")}, want: []string{"wait for etcd: an alarm"}},
		"etcd that begins": {seen: record.Machines{"cp-1": etcd("an alarm")}, steps: []step.Step{step.Restore{Machine: "cp-1"}}},
	} {
		same(t, name, PriorState{Record: Record{Seen: test.seen}}.waitsFor(p, test.steps), test.want)
	}

	want, have := withoutDrift()
	have.Etcd.Known, have.Etcd.Members = false, nil
	same(t, "of a snapshot", len(Waits(want, have, nil)), 2)
	same(t, "machines of a snapshot", Waits(want, have, nil)[0], "wait for cp-1, w-1")
	same(t, "with steps", Waits(want, have, []step.Step{step.Uncordon{Machine: "cp-1"}, step.Bootstrap{Machine: "w-1"}}), nil)
}
