package cluster_test

import (
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// With cni = none a node is Ready once another tool installed a network. A forecast drains the nodes that were last
// observed Ready, as the run does, and those that join them.
func TestForecast_drainsWhereAnotherToolInstallsTheNetwork(t *testing.T) {
	t.Parallel()

	want := cluster.Spec{
		Name: "prod", Bootstrapped: true,
		Machines: []cluster.Machine{
			{Name: "cp-1", Role: step.ControlPlane, Wanted: cluster.Wanted{Address: "10.0.0.1"}, Installation: cluster.Installation{TalosVersion: "v1.13.2"}},
			{Name: "w-1", Role: step.Worker, Wanted: cluster.Wanted{Address: "10.0.0.11"}, Installation: cluster.Installation{TalosVersion: "v1.13.2"}},
			{Name: "w-2", Role: step.Worker, Wanted: cluster.Wanted{Address: "10.0.0.12"}, Installation: cluster.Installation{TalosVersion: "v1.13.2"}},
		},
		Removed: []cluster.Machine{cluster.MachineAt("w-3", step.Worker, "10.0.0.13")},
	}

	for name, test := range map[string]struct {
		talos   bool
		ready   []string
		drained []string
	}{
		"all were ready": {ready: []string{"cp-1", "w-1", "w-2", "w-3"},
			drained: []string{"cp-1", "w-1", "w-2", "w-3"}},
		"one was not":       {ready: []string{"cp-1", "w-1", "w-3"}, drained: []string{"cp-1", "w-1", "w-2", "w-3"}},
		"no network yet":    {},
		"Talos installs it": {talos: true, drained: []string{"cp-1", "w-1", "w-2", "w-3"}},
	} {
		want.NodesBecomeReady = test.talos
		recorded := map[string]step.MachineState{}

		for _, m := range slices.Concat(want.Machines, want.Removed) {
			recorded[m.Name] = step.MachineState{
				Access: step.Member, Role: m.Role, Stage: step.StageRunning, TalosVersion: "v1.13.0",
				Ready: slices.Contains(test.ready, m.Name),
			}
		}

		steps, last := cluster.Forecast(want, cluster.Assume(want, recorded), cluster.DefaultPolicy())
		if !last.Done() {
			t.Errorf("%s: after all steps there still is:\n%s", name, render(last))
		}

		var drained []string

		for _, op := range steps {
			switch s := op.(type) {
			case step.Upgrade:
				if s.Drain {
					drained = append(drained, s.Machine)
				}
			case step.Reset:
				if s.Drain {
					drained = append(drained, s.Machine)
				}
			}
		}

		slices.Sort(drained)

		if !slices.Equal(drained, test.drained) {
			t.Errorf("%s: the forecast drains %q, want %q", name, drained, test.drained)
		}
	}
}

// A snapshot also restores a network from another tool. A rollout after a restore drains nodes if one was Ready
// before.
func TestForecast_drainsAfterARestoreOfTheNetwork(t *testing.T) {
	t.Parallel()

	want := cluster.Spec{
		Name: "prod", Bootstrapped: true, RestoreFrom: "etcd.snapshot",
		Machines: []cluster.Machine{
			{Name: "cp-1", Role: step.ControlPlane, Wanted: cluster.Wanted{Address: "10.0.0.1"}, Installation: cluster.Installation{TalosVersion: "v1.13.2"}},
			{Name: "w-1", Role: step.Worker, Wanted: cluster.Wanted{Address: "10.0.0.11"}, Installation: cluster.Installation{TalosVersion: "v1.13.2"}},
		},
	}

	for _, ready := range []bool{true, false} {
		recorded := map[string]step.MachineState{
			"cp-1": {Access: step.Maintenance, Stage: step.StageMaintenance},
			"w-1": {Access: step.Member, Role: step.Worker, Stage: step.StageRunning, TalosVersion: "v1.13.0",
				Ready: ready},
		}

		steps, last := cluster.Forecast(want, cluster.Assume(want, recorded), cluster.DefaultPolicy())
		if !last.Done() {
			t.Errorf("after all steps there still is:\n%s", render(last))
		}

		at := slices.IndexFunc(steps, func(s step.Step) bool { _, is := s.(step.Upgrade); return is })
		if at < 0 {
			t.Fatalf("nothing is upgraded: %v", steps)
		}

		if upgrade, _ := steps[at].(step.Upgrade); upgrade.Drain != ready {
			t.Errorf("with a node that was Ready %t before: %s", ready, upgrade)
		}
	}
}
