package sim_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// heapLimit for 500 configured machines, in bytes: what the simulator may cost the
// process in which the provider's memory is measured.
const heapLimit = 250 << 20

// TestCluster_fiveHundredMachinesFitIntoOneProcess starts a cluster of 3 + 497 machines from
// configurations on their disks and bootstraps it.
func TestCluster_fiveHundredMachinesFitIntoOneProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}

	simulator := sim.ForTest(t, sim.Options{})
	cluster := newTestCluster(t, simulator)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	cps, err := simulator.AddMachines(ctx, "cp", 3,
		sim.MachineOptions{Config: cluster.config(machinetype.TypeControlPlane)})
	check(t, err)

	workers, err := simulator.AddMachines(ctx, "worker", 497,
		sim.MachineOptions{Config: cluster.config(machinetype.TypeWorker)})
	check(t, err)

	start := time.Now()

	cluster.bootstrap(cps[0])

	for _, m := range append(cps, workers...) {
		check(t, m.AwaitReady(ctx))
	}

	runtime.GC()

	var mem runtime.MemStats

	runtime.ReadMemStats(&mem)
	t.Logf("500 machines ready %s after bootstrap, heap %d MiB, %d goroutines",
		time.Since(start).Round(time.Millisecond), mem.HeapInuse>>20, runtime.NumGoroutine())

	if mem.HeapInuse > heapLimit {
		t.Errorf("heap is %d MiB, want at most %d", mem.HeapInuse>>20, heapLimit>>20)
	}
}
