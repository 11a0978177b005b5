package cluster_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// A forecast continues after a wait, because the user approves what follows too.
func TestForecast_goesOnAfterAWait(t *testing.T) {
	t.Parallel()

	plane := func(name, address string) cluster.Machine {
		return cluster.Machine{Name: name, Role: step.ControlPlane, Wanted: cluster.Wanted{Address: address},
			Configured:   cluster.Configured{ConfigDigest: "new"},
			Installation: cluster.Installation{TalosVersion: "v1.13.0", Via: []cluster.Release{{Version: "v1.12.5"}}}}
	}
	seen := func(stage step.Stage, etcd step.ServiceState, version string) step.MachineState {
		return step.MachineState{Access: step.Member, Role: step.ControlPlane, Stage: stage, EtcdService: etcd,
			ConfigDigest: "new", TalosVersion: version, Ready: stage == step.StageRunning}
	}
	three := []cluster.Machine{plane("cp-1", "10.0.0.1"), plane("cp-2", "10.0.0.2"), plane("cp-3", "10.0.0.3")}
	worker := cluster.Machine{Name: "w-1", Role: step.Worker, Wanted: cluster.Wanted{Address: "10.0.0.11"},
		Configured:   cluster.Configured{ConfigDigest: "new"},
		Installation: cluster.Installation{TalosVersion: "v1.13.0"}}
	lost := step.MachineState{Access: step.Unreachable, Role: step.Worker, VolumesLost: true, NodeName: "w-2"}

	for name, test := range map[string]struct {
		want     cluster.Spec
		recorded map[string]step.MachineState
		waits    string
		steps    []string
	}{
		"a create that was interrupted while the first machine was installed": {
			want: cluster.Spec{Machines: []cluster.Machine{three[0], worker}},
			recorded: map[string]step.MachineState{
				"cp-1": seen(step.StageInstalling, step.ServicePreparing, "v1.13.0"),
				"w-1": {Access: step.Member, Role: step.Worker, Stage: step.StageRunning, ConfigDigest: "new",
					TalosVersion: "v1.13.0"},
			},
			waits: "cp-1: its etcd is Preparing",
			steps: []string{"bootstrap etcd on cp-1"},
		},
		"a control plane that left etcd joins again when it is upgraded": {
			want: cluster.Spec{Bootstrapped: true, Machines: three},
			recorded: map[string]step.MachineState{
				"cp-1": seen(step.StageRunning, step.ServiceFinished, "v1.11.6"),
				"cp-2": seen(step.StageRunning, "", "v1.12.5"), "cp-3": seen(step.StageRunning, "", "v1.13.0"),
			},
			steps: []string{
				"upgrade Talos on cp-1: v1.11.6 -> v1.12.5 (drain, wait for volumes, reboot)", "upgrade Talos on cp-1: v1.12.5 -> v1.13.0 (drain, wait for volumes, reboot)",
				"upgrade Talos on cp-2: v1.12.5 -> v1.13.0 (drain, wait for volumes, reboot)",
			},
		},
		"a container that leaves and never answers again": {
			want: cluster.Spec{Bootstrapped: true, Machines: []cluster.Machine{three[0]},
				Removed: []cluster.Machine{{Name: "w-2", Role: step.Worker, Wanted: cluster.Wanted{Address: "10.0.0.12"}, Container: true}}},
			recorded: map[string]step.MachineState{
				"cp-1": seen(step.StageRunning, "", "v1.13.0"), "w-2": lost,
			},
			waits: "w-2: is not removed yet: does not respond",
			steps: []string{"delete pod and volumes of worker w-2", "delete node w-2 from Kubernetes"},
		},
	} {
		test.want.Name, test.want.NodesBecomeReady = "prod", true

		steps, last := cluster.Forecast(test.want, cluster.Assume(test.want, test.recorded), cluster.DefaultPolicy())

		holds := test.waits == "" && last.Done() || slices.ContainsFunc(last.Holds,
			func(h step.Hold) bool { return test.waits != "" && strings.Contains(h.String(), test.waits) })
		if !holds || len(last.Refusals) > 0 {
			t.Errorf("%s: holds, want %q:\n%s", name, test.waits, render(last))
		}

		var lines []string

		for _, s := range steps {
			if _, uncordons := s.(step.Uncordon); !uncordons {
				lines = append(lines, s.String())
			}
		}

		if !slices.Equal(lines, test.steps) {
			t.Errorf("%s: the steps are\n%s", name, strings.Join(lines, "\n"))
		}
	}
}
