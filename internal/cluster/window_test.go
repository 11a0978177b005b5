package cluster_test

import (
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// A run may wait for hours for the maintenance window: it releases the lock of the cluster, but not while it has
// anything else to do.
func TestPlan_yieldsOutsideOfTheWindow(t *testing.T) {
	t.Parallel()

	opens := clock.Add(time.Hour)
	want := cluster.Spec{Name: "prod", Bootstrapped: true, NodesBecomeReady: true, Machines: []cluster.Machine{
		{Name: "cp-1", Role: step.ControlPlane, Wanted: cluster.Wanted{Address: "10.0.0.1"}, Configured: cluster.Configured{ConfigDigest: newDigest}, Installation: cluster.Installation{TalosVersion: "v1.13.0"}},
		{Name: "w-1", Role: step.Worker, Wanted: cluster.Wanted{Address: "10.0.0.2"}, Configured: cluster.Configured{ConfigDigest: newDigest}, Installation: cluster.Installation{TalosVersion: "v1.13.0"}},
	}}
	recorded := func(talos, worker string) map[string]step.MachineState {
		return map[string]step.MachineState{
			"cp-1": {Access: step.Member, Stage: step.StageRunning, Ready: true, TalosVersion: talos,
				ConfigDigest: newDigest},
			"w-1": {Access: step.Member, Stage: step.StageRunning, Ready: true, TalosVersion: "v1.13.0",
				ConfigDigest: worker},
		}
	}

	for name, c := range map[string]struct {
		talos, worker string
		yields        bool
	}{
		"an upgrade waits":                      {"v1.12.6", newDigest, true},
		"an upgrade waits beside another thing": {"v1.12.6", "old", false},
		"nothing waits":                         {"v1.13.0", "old", false},
	} {
		have := cluster.Assume(want, recorded(c.talos, c.worker))
		have.Time, have.Window = clock, cluster.Window{Closed: true, Opens: opens}

		d := cluster.Plan(want, have, cluster.DefaultPolicy())
		if d.Yields != c.yields || d.Opens.Equal(opens) != c.yields {
			t.Errorf("%s: yields %v until %s\n%s", name, d.Yields, d.Opens, render(d))
		}
	}
}
