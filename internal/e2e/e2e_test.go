package e2e

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// scenarios in the order in which they run; each leaves the machines as it found them.
var scenarios = []struct {
	name string
	run  func(s site, t *testing.T, cli clitest.CLI)
}{
	{"create", site.create},
	{"killed", site.killed},
	{"interrupted", site.interrupted},
	{"changes", site.changes},
	{"restore", site.restore},
	{"addon", site.addon},
	{"upgrade", site.upgrade},
	{"upgrade killed", site.upgradeKilled},
	{"stopped", site.stopped},
}

// elsewhere are scenarios that simulated machines are not taken through here: the minutes of waiting for a machine to
// count as dead are in internal/lifecycle, the upgrade that is killed has all of the one that is not, and the life of
// an addon is in internal/provider.
var elsewhere = []string{"stopped", "upgrade", "addon"}

// interruptions are scenarios about the provider's process, which the simulator's own etcd and Kubernetes API serve as
// well: real ones cost more than everything else in them.
var interruptions = []string{"killed", "interrupted"}

// TestMachines runs the scenarios on the machines of the environment, one after the other. They take minutes each, so
// each runs under one CLI, in turn.
func TestMachines(t *testing.T) {
	s := siteFromEnvironment(t)
	clis := clitest.All(t)

	for i, scenario := range scenarios {
		t.Run(scenario.name, func(t *testing.T) { scenario.run(s, t, clis[i%len(clis)]) })

		if t.Failed() {
			t.Fatalf("scenario %s failed: the machines are left as they are", scenario.name)
		}
	}
}

// TestAccSimulated_scenarios runs the scenarios on simulated machines, with a real etcd and kube-apiserver where they
// matter, each under one CLI as well. They wait more than they compute, so they run side by side.
func TestAccSimulated_scenarios(t *testing.T) {
	assets := filepath.Dir(clitest.Asset(t, "kube-apiserver"))
	clis := clitest.All(t)

	for i, scenario := range scenarios {
		if slices.Contains(elsewhere, scenario.name) {
			continue
		}

		parts := assets
		if slices.Contains(interruptions, scenario.name) {
			parts = ""
		}

		t.Run(scenario.name, func(t *testing.T) {
			t.Parallel()
			scenario.run(simulated(t, parts, 3, 1), t, clis[i%len(clis)])
		})
	}
}

// TestAccSimulated_withoutReset runs create on machines that cannot reset: everything but the destroy, and the cluster
// stays.
func TestAccSimulated_withoutReset(t *testing.T) {
	t.Parallel()

	s := simulated(t, "", 1, 1)
	s.cannot = []string{"reset"}
	s.create(t, clitest.Any(t))

	for _, address := range s.machines() {
		if err := waitsInMaintenance(t.Context(), address); err == nil {
			t.Errorf("%s was reset", address)
		}
	}
}

// simulated starts machines in maintenance mode, with the real etcd and kube-apiserver of a folder or, without one,
// with stand-ins. Reboots take a second, so that what is waited for between two stages is there to see.
func simulated(t *testing.T, assets string, controlPlanes, workers int) site {
	t.Helper()

	delays := timing.TestDelays()
	delays.Install, delays.Reboot, delays.EtcdJoin = time.Second, time.Second, time.Second

	simulator := sim.ForTest(t, sim.Options{Delays: &delays, Assets: assets})

	endpoint, err := simulator.Endpoint()
	if err != nil {
		t.Fatal(err)
	}

	return site{
		controlPlanes: start(t, simulator, "cp", controlPlanes),
		workers:       start(t, simulator, "worker", workers),
		endpoint:      endpoint,
		talosVersion:  sim.DefaultTalosVersion,
		kubernetes:    "v1.36.3",
		disk:          "/dev/sda",
		boot:          5 * time.Minute,

		kubernetesBefore: "v1.35.4",
	}
}

// start adds machines to a simulator and returns their addresses.
func start(t *testing.T, simulator *sim.Simulator, prefix string, n int) []string {
	t.Helper()

	machines, err := simulator.AddMachines(t.Context(), prefix, n, sim.MachineOptions{})
	if err != nil {
		t.Fatal(err)
	}

	addresses := make([]string, 0, n)
	for _, m := range machines {
		addresses = append(addresses, m.Address().String())
	}

	return addresses
}
