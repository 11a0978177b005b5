package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// TestForecastOfLostVolumes foretells, from what a state recorded, that volumes are replaced as long as etcd has a quorum without them, and
// refuses what cannot come to an end, unless a snapshot is there.
func TestForecastOfLostVolumes(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		planes, lost int
		restore      string
		first        string // step
		refused      string
	}{
		"one of three":            {planes: 3, lost: 1, first: "replace volumes of control plane cp-0 (its data is lost)"},
		"two of three":            {planes: 3, lost: 2, refused: "the data of 2 of 3 control planes is lost (cp-0)"},
		"the only one":            {planes: 1, lost: 1, refused: "the data of 1 of 1 control planes is lost (cp-0)"},
		"all, and a snapshot":     {planes: 3, lost: 3, restore: "key", first: "replace volumes of control plane cp-0 (its data is lost)"},
		"the only one, with that": {planes: 1, lost: 1, restore: "key", first: "replace volumes of control plane cp-0 (its data is lost)"},
	} {
		want := cluster.Spec{Name: "dev", Bootstrapped: true, RestoreFrom: test.restore, NodesBecomeReady: true}
		recorded := map[string]cluster.MachineState{}

		for i := range test.planes {
			m := cluster.Machine{
				Name: fmt.Sprintf("cp-%d", i), Role: cluster.ControlPlane, Container: true, Address: fmt.Sprintf("dev-cp-%d.x", i), TalosVersion: "v1.13.0",
				NodeName: fmt.Sprintf("dev-cp-%d", i), MemberID: fmt.Sprintf("m-%d", i),
			}
			want.Machines = append(want.Machines, m)

			recorded[m.Name] = cluster.MachineState{Access: cluster.Unreachable, VolumesLost: true, NodeName: m.NodeName}
			if i >= test.lost {
				recorded[m.Name] = cluster.MachineState{
					Access: cluster.Member, Stage: cluster.StageRunning, Ready: true, TalosVersion: "v1.13.0", NodeName: m.NodeName,
				}
			}
		}

		steps, last := cluster.Forecast(want, cluster.Assume(want, recorded), cluster.DefaultPolicy())

		if test.refused != "" {
			if len(steps) > 0 || len(last.Refusals) != 1 || !strings.Contains(last.Refusals[0].Reason, test.refused) {
				t.Errorf("%s: the steps are %q, and then\n%s", name, texts(steps), render(last))
			}

			continue
		}

		if len(steps) == 0 || steps[0].String() != test.first || !last.Done() {
			t.Errorf("%s: the steps are %q, and then\n%s", name, texts(steps), render(last))
		}
	}
}
