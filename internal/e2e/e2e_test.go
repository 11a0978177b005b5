package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

// scenarios in the order in which they run; each one resets the machines at its end.
var scenarios = []struct {
	name string
	run  func(s site, t *testing.T, cli clitest.CLI)
}{
	{"create", site.create},
	{"killed", site.killed},
	{"interrupted", site.interrupted},
	{"changes", site.changes},
	{"metal", site.metal},
	{"restore", site.restore},
	{"rotation", site.rotation},
	{"secretless", site.secretless},
	{"operations", site.operations},
	{"day two", site.dayTwo},
	{"wipes", site.wipes},
	{"addon", site.addon},
	{"upgrade", site.upgrade},
	{"upgrade killed", site.upgradeKilled},
	{"stopped", site.stopped},
}

// TestMachines runs the scenarios on the machines of the environment, one after the other. Each takes minutes and
// runs under one CLI, in turn.
func TestMachines(t *testing.T) {
	s := siteFromEnvironment(t)
	clis := clitest.All(t)

	for i, scenario := range scenarios {
		t.Run(scenario.name, func(t *testing.T) {
			recordPass(t, scenario.name, s.platform, s.talosVersion, s.kubernetes)
			scenario.run(s, t, clis[i%len(clis)])
		})

		if t.Failed() {
			t.Fatalf("scenario %s failed: the machines are left as they are", scenario.name)
		}
	}
}

// The scenarios on simulated machines, each under one CLI. They mostly wait, so they run in parallel. Two have no
// test here. What stopped waits for, a machine that counts as dead, takes minutes here and none in
// internal/lifecycle. The killed upgrade covers all of the undisturbed one.

// The demo, which creates a cluster, too, has the real etcd and API servers.
func TestAccSimulated_create(t *testing.T) {
	assets := ""
	if testenv.Everything() {
		assets = realParts(t)
	}

	simulate(t, assets, site.create)
}

// The CLI gets the signal that a person sends, which no other test does.
func TestAccSimulated_interrupted(t *testing.T) {
	t.Parallel()
	simulated(t, "", 1, 1).interrupted(t, clitest.One(t))
}

func TestAccSimulated_killed(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccCreateAndDestroy_killedAtEveryChange")
	simulate(t, "", site.killed)
}

func TestAccSimulated_changes(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccScale_up", "TestAccScale_downTouchesNothingElse", "TestAccUpdate_withoutAReboot",
		"TestAccReboot_onlyWhereNeeded", "TestAccDrift_isRepaired", "TestUpgrade_inSeveralHops")
	simulate(t, realParts(t), site.changes)
}

func TestAccSimulated_metal(t *testing.T) {
	testenv.BeforeRelease(t, "TestUpgrade_rolledBackStopsTheRollout", "TestAccReboot_onlyWhereNeeded", "TestAccChanges_killed")
	simulate(t, realParts(t), site.metal)
}

func TestAccSimulated_operations(t *testing.T) {
	testenv.BeforeRelease(t, "TestOperationResource_followsItsTriggers", "TestActions_onACluster")
	simulate(t, "", site.operations)
}

func TestAccSimulated_dayTwo(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccVolumes_killed", "TestHooks_killedAtEveryCall")
	simulate(t, realParts(t), site.dayTwo)
}

func TestAccSimulated_restore(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccRestore_killed", "TestAccRestore_ofRealEtcd")
	simulate(t, realParts(t), site.restore)
}

func TestAccSimulated_rotation(t *testing.T) {
	testenv.BeforeRelease(t, "TestRotation_ofEveryKeyWhileAClientWrites", "TestRotation_survivesFailures",
		"TestRotation_goesOnAfterAppliesThatEndEarly")
	simulate(t, "", site.rotation) // the API server of realParts keeps one authority
}

func TestAccSimulated_secretless(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccProvidedSecrets_areNowhere", "TestAccSecrets_scan")
	simulate(t, "", site.secretless)
}

func TestAccSimulated_addon(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccAddon_onACluster", "TestAccAddon_lifecycle")
	simulate(t, realParts(t), site.addon)
}

func TestAccSimulated_upgradeKilled(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccChanges_killed", "TestAccKubernetesUpgrade_ofAWholeCluster")
	simulate(t, realParts(t), site.upgradeKilled)
}

// simulate takes simulated machines through a scenario.
func simulate(t *testing.T, assets string, scenario func(s site, t *testing.T, cli clitest.CLI)) {
	t.Helper()
	t.Parallel()

	scenario(simulated(t, assets, 3, 1), t, clitest.One(t))
}

// realParts is the folder of a real etcd and kube-apiserver, for scenarios that depend on them. They cost more than
// everything else in a scenario.
func realParts(t *testing.T) string {
	t.Helper()

	return filepath.Dir(clitest.Asset(t, "kube-apiserver"))
}

// TestAccSimulated_withoutReset runs create on machines that cannot reset: everything but the destroy.
func TestAccSimulated_withoutReset(t *testing.T) {
	testenv.BeforeRelease(t, "TestAccSimulated_create")
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

// simulated starts machines in maintenance mode, with the real etcd and kube-apiserver of a folder or, without a
// folder, with stand-ins. A reboot takes a second, so that tests can see the stages in between.
func simulated(t *testing.T, assets string, controlPlanes, workers int) site {
	t.Helper()

	delays := timing.TestDelays()
	delays.Install, delays.Reboot, delays.EtcdJoin = time.Second, time.Second, time.Second

	simulator := sim.ForTest(t, sim.Options{Delays: &delays, Assets: assets})

	endpoint, err := simulator.Endpoint()
	if err != nil {
		t.Fatal(err)
	}

	if err := simulator.SetImage("ghcr.io/siderolabs/installer:v1.13.5", images.Image{BootFails: true}); err != nil {
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
		talosAfter:       "v1.13.2",
		talosFailing:     "v1.13.5",
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
