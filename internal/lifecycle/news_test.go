package lifecycle_test

import (
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// Workers join and are upgraded although no machine is polled for minutes, because their changes are reported.
func TestNews_areAllThatARunWaitsFor(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0, sim.Options{})
	s.create()
	s.add("w", 3, step.Worker)

	rarely := func() {
		t.Helper()

		runner := s.runner()
		runner.Interval = 2 * time.Minute // the run has less time than a few of these

		if _, err := runner.Converge(bounded(t), s.want); err != nil {
			t.Fatal(err)
		}
	}

	rarely()

	for i := range s.want.Machines {
		if m := &s.want.Machines[i]; m.Role == step.Worker {
			m.TalosVersion, m.Installer = "v1.13.2", "ghcr.io/siderolabs/installer:v1.13.2"
		}
	}

	rarely()

	for _, m := range s.sim.Machines() {
		if want := s.want.Machines[1].TalosVersion; m.Name() != "cp-1" && m.TalosVersion() != want {
			t.Errorf("%s runs %s, want %s", m.Name(), m.TalosVersion(), want)
		}
	}
}

// Control planes are followed through an upgrade of Kubernetes although nothing is polled for minutes: their pods are
// reported, and the run ends with the last one that is ready.
func TestNews_ofControlPlanePods(t *testing.T) {
	t.Parallel()

	s := kubernetesSite(t, 3, 0, "v1.35.4")
	s.kubernetes("v1.36.3")

	runner := s.runner()
	runner.Interval = 2 * time.Minute // the run has less time than a few of these

	if _, err := runner.Converge(bounded(t), s.want); err != nil {
		t.Fatal(err)
	}

	s.runsKubernetes("v1.36.3")
}
