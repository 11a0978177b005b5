package machineset

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// Machines that cannot be read are distinguished by the reason.
func TestWarnOfUnanswered(t *testing.T) {
	t.Parallel()

	const silent, foreign, volumesLost = "Warning: machines_unreachable", "Warning: identity_mismatch", "Warning: volumes_lost"

	for name, test := range map[string]struct {
		state step.MachineState
		want  string
		line  string
	}{
		"member":        {state: step.MachineState{Access: step.Member}},
		"waits":         {state: step.MachineState{Access: step.Maintenance}},
		"gone":          {state: step.MachineState{Access: step.Gone}},
		"unreachable":   {state: step.MachineState{Access: step.Unreachable, Cause: "no route"}, want: silent, line: "w-1 (10.0.0.11): no route"},
		"not asked":     {state: step.MachineState{}, want: silent, line: "w-1 (10.0.0.11): not asked in time"},
		"foreign":       {state: step.MachineState{Access: step.Foreign}, want: foreign, line: "w-1 (10.0.0.11): answers with another identity"},
		"foreign, why":  {state: step.MachineState{Access: step.Foreign, Cause: "another CA"}, want: foreign, line: "w-1 (10.0.0.11): another CA"},
		"lost its data": {state: step.MachineState{Access: step.Unreachable, VolumesLost: true, Cause: "node gone"}, want: volumesLost, line: "w-1: node gone"},
	} {
		spec, have := withoutDrift()
		have.Machines["w-1"] = test.state

		var want []string
		if test.want != "" {
			want = []string{test.want}
		}

		expect(t, name, WarnOfUnanswered(spec, have, nil), want, "machines: w-1\nreasons: "+test.line+"\n")
	}
}

// A machine that is off is in one warning, which says that an apply waits for it.
func TestWarnOfUnanswered_machineThatIsOff(t *testing.T) {
	t.Parallel()

	spec, have := withoutDrift()
	have.Machines["w-1"] = step.MachineState{Access: step.Unreachable, Cause: "no route"}
	troubles := []health.Trouble{{Machine: "w-1", Reason: "its node is not Ready"}}

	expect(t, "health", WarnOfTroubles(spec, have, troubles), nil)
	expect(t, "silence", WarnOfUnanswered(spec, have, troubles), []string{"Warning: machines_unreachable"}, "awaited: w-1\n")
}

// Certain losses are distinguished from silence.
func TestLost(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		change func(have *cluster.Snapshot)
		new    bool
		lost   bool
	}{
		"nothing":   {change: func(*cluster.Snapshot) {}},
		"wiped":     {change: func(h *cluster.Snapshot) { h.Machines["w-1"] = step.MachineState{Access: step.Maintenance} }, lost: true},
		"new":       {change: func(h *cluster.Snapshot) { h.Machines["w-1"] = step.MachineState{Access: step.Maintenance} }, new: true},
		"gone":      {change: func(h *cluster.Snapshot) { h.Machines["w-1"] = step.MachineState{Access: step.Gone} }, lost: true},
		"silent":    {change: func(h *cluster.Snapshot) { h.Machines["w-1"] = step.MachineState{Access: step.Unreachable} }},
		"no volume": {change: func(h *cluster.Snapshot) { h.Machines["w-1"] = step.MachineState{VolumesLost: true} }, lost: true},
		"no member": {change: func(h *cluster.Snapshot) { h.Etcd = etcdstate.State{Known: true} }, lost: true},
	} {
		want, have := withoutDrift()
		recorded := Record{Machines: map[string]step.MachineState{"cp-1": {Access: step.Member}, "w-1": {Access: step.Member}}}
		test.change(&have)

		if test.new {
			delete(recorded.Machines, "w-1")
		}

		same(t, name, Lost(want, have, PriorState{Record: recorded}), test.lost)
	}
}

func TestGone_isWhatAHostHasNothingOf(t *testing.T) {
	t.Parallel()

	p := aSet(t, pods(2, 1))
	r := recordOf(p)
	delete(r.Machines, "batch/0")

	seen := workload.Observation{Machines: map[string]workload.MachineState{"cp-0": {Exists: true}}}
	same(t, "of the host", r.GoneOf(p, seen), []string{"cp-1"})

	have := cluster.Snapshot{Machines: map[string]step.MachineState{"cp-0": {Access: step.Gone}, "batch/0": {Access: step.Gone}}}
	same(t, "of a refresh", r.GoneIn(p.Spec(PriorState{}, Rendered{}), have), []string{"cp-0"})

	expect(t, "one", WarnOfGone([]string{"cp-0"}, workload.Identity{}, GoneInUpdate), []string{"Warning: machines_recreated"},
		"host: \nmachines: cp-0\n")
	expect(t, "some", WarnOfGone([]string{"cp-0", "cp-1"}, workload.Identity{Server: "https://host", UID: "u"}, GoneInRefresh),
		[]string{"Warning: machines_gone"}, "host: (https://host, kube-system UID u)\n", "machines: cp-0 | cp-1\n")
	expect(t, "removed", WarnOfGone([]string{"cp-0"}, workload.Identity{}, GoneInDestroy), []string{"Warning: machines_gone_before"})
	expect(t, "none", WarnOfGone(nil, workload.Identity{}, GoneInRefresh), nil)
}

func TestStateOf(t *testing.T) {
	t.Parallel()

	for want, s := range map[string]step.MachineState{
		"in maintenance mode":                       {Access: step.Maintenance},
		"in the cluster":                            {Access: step.Member},
		"in the cluster, running":                   {Access: step.Member, Stage: step.StageRunning, Unmet: []string{"time"}, Ready: true},
		"in the cluster, booting, not ready (a, b)": {Access: step.Member, Stage: step.StageBooting, Unmet: []string{"a", "b"}},
		"answering with another identity":           {Access: step.Foreign},
		"not on the host cluster":                   {Access: step.Gone},
		"not answering":                             {Access: step.Unreachable},
		"odd":                                       {Access: "odd"},
	} {
		same(t, want, StateOf(s), want)
	}

	same(t, "not asked", StateOf(step.MachineState{}), "not answering")
}
