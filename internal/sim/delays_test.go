package sim_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// TestCriticalPath_isTheLeastTimeOfACreate measures machines that are configured all at
// once and bootstrapped as soon as possible: nothing is faster than the critical path,
// and little is slower. A machine that is busy with something else is given another chance.
func TestCriticalPath_isTheLeastTimeOfACreate(t *testing.T) {
	const attempts = 5

	step := 100 * time.Millisecond
	delays := timing.Delays{
		Install: step, Reboot: step, Boot: step, EtcdStart: step, EtcdJoin: step, EtcdPromote: step,
		APIServer: step, NodeRegister: step, NodeReady: step,
	}
	want := delays.CriticalPath(3)

	for attempt := range attempts {
		took := timeOfACreate(t, delays, 3, 2)
		t.Logf("took %s, critical path %s", took.Round(time.Millisecond), want)

		switch {
		case took < want:
			t.Fatalf("took %s, less than the critical path %s", took, want)
		case took <= 5*want:
			return
		case attempt == attempts-1:
			t.Errorf("took %s, critical path %s", took, want)
		}
	}
}

func timeOfACreate(t *testing.T, delays timing.Delays, controlPlanes, others int) time.Duration {
	t.Helper()

	simulator := sim.ForTest(t, sim.Options{Delays: &delays})
	cps, workers := addMachines(t, simulator, "cp", controlPlanes), addMachines(t, simulator, "worker", others)
	cluster := newTestCluster(t, simulator)
	start := time.Now()

	for _, m := range workers {
		cluster.apply(m, machinetype.TypeWorker)
	}

	for _, m := range cps {
		cluster.apply(m, machinetype.TypeControlPlane)
	}

	// A new client for each attempt: one that was refused would wait a second.
	eventually(t, "bootstrap", func(ctx context.Context) error {
		return cluster.secure(cps[0]).Bootstrap(ctx, &machine.BootstrapRequest{})
	})

	for _, m := range slices.Concat(cps, workers) {
		check(t, m.AwaitReady(within(t, time.Minute)))
	}

	return time.Since(start)
}
