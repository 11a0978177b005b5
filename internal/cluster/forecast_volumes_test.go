package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// TestForecast_ofLostVolumes: from a recorded state, volumes are replaced while etcd has a quorum without them. What
// cannot finish is refused, unless there is a snapshot.
func TestForecast_ofLostVolumes(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		planes, lost int
		restore      string
		first        string // step
		refused      string
	}{
		"one of three": {planes: 3, lost: 1, first: "replace volumes of control plane cp-0 (its data is lost)"},
		"two of three": {planes: 3, lost: 2, refused: "the data of 2 of 3 control planes is lost (cp-0)"},
		"the only one": {planes: 1, lost: 1, refused: "the data of 1 of 1 control planes is lost (cp-0)"},
		"all, and a snapshot": {planes: 3, lost: 3, restore: "key",
			first: "replace volumes of control plane cp-0 (its data is lost)"},
		"the only one, with that": {planes: 1, lost: 1, restore: "key",
			first: "replace volumes of control plane cp-0 (its data is lost)"},
	} {
		want := cluster.Spec{Name: "dev", Bootstrapped: true, RestoreFrom: test.restore, NodesBecomeReady: true}
		recorded := map[string]step.MachineState{}

		for i := range test.planes {
			m := cluster.Machine{
				Name: fmt.Sprintf("cp-%d", i), Role: step.ControlPlane, Container: true,
				Wanted:       cluster.Wanted{Address: fmt.Sprintf("dev-cp-%d.x", i)},
				Installation: cluster.Installation{TalosVersion: "v1.13.0"},
				Remembered:   cluster.Remembered{NodeName: fmt.Sprintf("dev-cp-%d", i), MemberID: fmt.Sprintf("m-%d", i)},
			}
			want.Machines = append(want.Machines, m)

			recorded[m.Name] = step.MachineState{Access: step.Unreachable, VolumesLost: true, NodeName: m.NodeName}
			if i >= test.lost {
				recorded[m.Name] = step.MachineState{
					Access: step.Member, Stage: step.StageRunning, Ready: true, TalosVersion: "v1.13.0", NodeName: m.NodeName,
				}
			}
		}

		checkForecast(t, name, want, recorded, test.first, test.refused)
	}
}

// TestForecast_ofLostVolumesWhileGrowing counts the members of etcd, and not the machines that will join it.
func TestForecast_ofLostVolumesWhileGrowing(t *testing.T) {
	t.Parallel()

	works := step.MachineState{Access: step.Member, Stage: step.StageRunning, Ready: true,
		TalosVersion: "v1.13.0"}
	lost := step.MachineState{Access: step.Unreachable, VolumesLost: true}

	for name, test := range map[string]struct {
		joined   int  // of the three, the first
		beside   bool // are those that are not recorded
		recorded []step.MachineState
		first    string // step
		refused  string
	}{
		"two that never joined": {joined: 1, recorded: []step.MachineState{works, lost, lost},
			first: "replace volumes of control plane cp-1 (its data is lost)"},
		"the only member": {joined: 1, recorded: []step.MachineState{lost},
			refused: "the data of 1 of 1 control planes in etcd is lost (cp-0)"},
		"one of two members": {joined: 2, recorded: []step.MachineState{works, lost},
			refused: "the data of 1 of 2 control planes in etcd is lost (cp-1)"},
		"one that is not recorded": {joined: 2, recorded: []step.MachineState{works, lost, works},
			first: "replace volumes of control plane cp-1 (its data is lost)"},
		"one of three, two beside": {
			joined: 1, beside: true, recorded: []step.MachineState{lost},
			first: "replace volumes of control plane cp-0 (its data is lost)",
		},
		"no machine is recorded": {recorded: []step.MachineState{works, lost, lost},
			refused: "the data of 2 of 3 control planes is lost (cp-1)"},
	} {
		want := cluster.Spec{Name: "dev", Bootstrapped: true, NodesBecomeReady: true}
		recorded := map[string]step.MachineState{}

		for i := range 3 {
			m := cluster.Machine{
				Name: fmt.Sprintf("cp-%d", i), Role: step.ControlPlane, Container: true,
				Wanted:       cluster.Wanted{Address: fmt.Sprintf("dev-cp-%d.x", i)},
				Installation: cluster.Installation{TalosVersion: "v1.13.0"},
				Remembered:   cluster.Remembered{NodeName: fmt.Sprintf("dev-cp-%d", i), Joined: i < test.joined},
			}
			if i < len(test.recorded) {
				recorded[m.Name] = test.recorded[i]
			} else if test.beside {
				want.OtherControlPlanes = append(want.OtherControlPlanes, m)

				continue
			}

			want.Machines = append(want.Machines, m)
		}

		checkForecast(t, name, want, recorded, test.first, test.refused)
	}
}

// checkForecast checks that a forecast from the record begins with a step and finishes, or has no step and is
// refused.
func checkForecast(
	t *testing.T, name string, want cluster.Spec, recorded map[string]step.MachineState, first, refused string,
) {
	t.Helper()

	steps, last := cluster.Forecast(want, cluster.Assume(want, recorded), cluster.DefaultPolicy())

	right := len(steps) > 0 && steps[0].String() == first && last.Done()
	if refused != "" {
		right = len(steps) == 0 && len(last.Refusals) == 1 && strings.Contains(last.Refusals[0].Reason, refused)
	}

	if !right {
		t.Errorf("%s: the steps are %q, and then\n%s", name, texts(steps), render(last))
	}
}
