package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
)

// shared is a cluster of single machines in two stacks, each with two provider configurations: four processes that
// know nothing of each other.
const shared = `
terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}

provider "talosop" {}

provider "talosop" {
  alias = "other"
}

variable "secrets" {
  sensitive = true
}

locals {
  cluster = {
    name               = "shared"
    endpoint           = %q
    secrets            = var.secrets
    talos_endpoints    = [%s]
    kubernetes_version = "v1.36.2"
    version_contract   = "v1.13"
  }
}
`

const sharedMachines = `
resource "talosop_machine" %q {
  provider      = %s
  for_each      = { %s }
  cluster       = local.cluster
  name          = each.key
  role          = startswith(each.key, "cp-") ? "controlplane" : "worker"
  address       = each.value
  bootstrap     = each.key == "cp-1"

  allow_bootstrap = each.key == "cp-1"

  talos_version = %q
  install       = { disk = "/dev/sda" }
}
`

// stack is the configuration of one stack: the machines of each provider.
func (s site) stack(simulator *sim.Simulator, version string, machines, others []string) string {
	var endpoints []string
	for _, address := range s.controlPlanes {
		endpoints = append(endpoints, fmt.Sprintf("%q", address))
	}

	entries := func(names []string) string {
		var out []string
		for _, name := range names {
			out = append(out, fmt.Sprintf("%s = %q", name, simulator.Machine(name).Address()))
		}

		return strings.Join(out, ", ")
	}

	return fmt.Sprintf(shared, s.endpoint, strings.Join(endpoints, ", ")) +
		fmt.Sprintf(sharedMachines, "these", "talosop", entries(machines), version) +
		fmt.Sprintf(sharedMachines, "those", "talosop.other", entries(others), version)
}

// TestAccMachines_takeTurns upgrades a cluster of single machines with two applies at the same time, each with two
// provider processes and ten resources in parallel. Machines still go out of service one after the other.
func TestAccMachines_takeTurns(t *testing.T) {
	t.Parallel()

	s, simulator := standIn(t, 3, 3)

	bundle, err := secretstest.Generate()
	if err != nil {
		t.Fatal(err)
	}

	secrets, err := bundle.YAML()
	if err != nil {
		t.Fatal(err)
	}

	// One stack has cp-1, cp-2 and worker-1; the other has the rest.
	clis := clitest.All(t)
	stacks := [][2][]string{{{"cp-1", "worker-1"}, {"cp-2"}}, {{"cp-3"}, {"worker-2", "worker-3"}}}

	var workspaces []*clitest.Workspace

	for i := range stacks {
		w := clitest.NewWorkspace(t, clis[i%len(clis)])
		w.Setenv("TF_VAR_secrets", string(secrets))
		workspaces = append(workspaces, w)
	}

	apply := func(version string) {
		var applies []*clitest.Process

		for i, w := range workspaces {
			w.Write("main.tf", s.stack(simulator, version, stacks[i][0], stacks[i][1]))
			w.Init()
			applies = append(applies, w.Start("apply", "-auto-approve", "-parallelism=10"))
		}

		for _, p := range applies {
			if result := p.Wait(); result.Exit != 0 {
				t.Fatalf("apply with Talos %s: exit status %d\n%s", version, result.Exit, result.Output())
			}
		}
	}

	apply(sim.DefaultTalosVersion)

	violations := guard(simulator)

	apply("v1.13.2")

	for _, v := range violations() {
		t.Error(v)
	}

	for _, m := range simulator.Machines() {
		if m.TalosVersion() != "v1.13.2" || m.Boots() < 2 {
			t.Errorf("%s runs Talos %s after %d boots", m.Name(), m.TalosVersion(), m.Boots())
		}
	}

	for _, w := range workspaces {
		plansNothing(t, w, "after the upgrade")
	}
}

// guard watches for machines that reboot while another one is out of service. It returns the violations.
func guard(simulator *sim.Simulator) (violations func() []string) {
	var (
		mu    sync.Mutex
		found []string
	)

	simulator.SetOnCall(func(c fault.Call) error {
		if c.Method != "Reboot" {
			return nil
		}

		for _, m := range simulator.Machines() {
			// A booting machine may already report itself ready.
			if ready, unmet := m.Ready(); m.Name() != c.Machine && (!ready || m.Stage() != sim.StageRunning) {
				mu.Lock()
				found = append(found, fmt.Sprintf("%s was rebooted while %s was out of service: %v", c.Machine, m.Name(), unmet))
				mu.Unlock()
			}
		}

		return nil
	})

	return func() []string {
		simulator.SetOnCall(nil)
		mu.Lock()
		defer mu.Unlock()

		return slices.Clone(found)
	}
}

// change is a change of the configuration of a cluster.
type change struct {
	name  string
	calls int // calls that change machines, at least
	make  func(s *site)
}

// killedChange is a change whose provider is killed at its n-th call that changes a machine, before or after the
// machine executes it.
type killedChange struct {
	change
	n      int
	served bool
}

// killedChanges are the changes that one cluster after the other goes through. Each is killed at its first call
// before the machine executes it, or at its last call after. In make test-all every call is killed in both ways,
// each on a separate cluster.
func killedChanges() [][]killedChange {
	changes := []change{
		{"upgrade", 9, func(s *site) { s.talosVersion = "v1.13.2" }},
		{"reboot", 6, func(s *site) { s.patches = append(s.patches, rebootPatch) }},
		{"kubernetes", 16, func(s *site) { s.kubernetes = "v1.36.3" }},
		{"shrink", 2, func(s *site) { s.controlPlanes = s.controlPlanes[:2] }},
	}

	if !testenv.Everything() {
		var cluster []killedChange

		for i, c := range changes {
			at := killedChange{c, 1, false}
			if i%2 == 1 {
				at = killedChange{c, c.calls, true}
			}

			cluster = append(cluster, at)
		}

		return [][]killedChange{cluster}
	}

	var clusters [][]killedChange

	for _, c := range changes {
		for n := 1; n <= c.calls; n++ {
			clusters = append(clusters, []killedChange{{c, n, false}}, []killedChange{{c, n, true}})
		}
	}

	return clusters
}

// TestAccChanges_killed kills the provider process with SIGKILL in every kind of change, at the calls of
// killedChanges. The next apply ends where an undisturbed apply does, and reboots no machine more often than the
// change needs.
func TestAccChanges_killed(t *testing.T) {
	clis := clitest.All(t)

	for i, changes := range killedChanges() {
		cli := clis[(i+i/len(clis))%len(clis)]

		t.Run(fmt.Sprintf("cluster %d %s", i+1, cli.Name), func(t *testing.T) {
			t.Parallel()

			s, machines := standIn(t, 3, 1)
			w := s.files(t, cli)
			w.MustRun("apply", "-auto-approve")

			for _, c := range changes {
				t.Logf("%s, killed at call %d, served=%t", c.name, c.n, c.served)
				changeKilled(t, &s, machines, w, c)
			}
		})
	}
}

func changeKilled(t *testing.T, s *site, machines *sim.Simulator, w *clitest.Workspace, c killedChange) {
	t.Helper()

	boots := map[string]int{}
	for _, m := range machines.Machines() {
		boots[m.Name()] = m.Boots()
	}

	c.make(s)
	w.Write(variables, s.variables(t, false))
	kill(t, machines, w, c.n, c.served, "apply", "-auto-approve")
	w.MustRun("apply", "-auto-approve")
	s.isUsable(t, w)
	plansNothing(t, w, "after the change that was killed")

	for _, m := range machines.Machines() {
		if again := m.Boots() - boots[m.Name()]; again > 1 {
			t.Errorf("%s was rebooted %d times by: %s", m.Name(), again, c.name)
		}
	}
}
