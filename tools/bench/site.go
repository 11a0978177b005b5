package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// site is a set of simulated machines and a workspace that describes them.
type site struct {
	sim       *sim.Simulator
	workspace *clitest.Workspace
	config    string
}

const required = `terraform {
  required_providers {
    talosop = { source = "talosop/talosop" }
  }
}
`

const head = required + `
resource "talosop_secrets" "bench" {
  deletion_protection = false
}
`

func newSite(tb testing.TB, controlPlanes, workers int, delays timing.Delays) *site {
	tb.Helper()

	simulator := sim.ForTest(tb, sim.Options{Delays: &delays})

	endpoint, err := simulator.Endpoint()
	if err != nil {
		tb.Fatal(err)
	}

	var config strings.Builder

	config.WriteString(head)
	fmt.Fprintf(&config, `
resource "talosop_control_plane" "bench" {
  mode                = "metal"
  name                = "bench"
  endpoint            = %q
  secrets             = talosop_secrets.bench.bundle
  talos_version       = %q
  kubernetes_version  = "v1.35.2"
  deletion_protection = false
  machines = {
%s  }
}
`, endpoint, sim.DefaultTalosVersion, machines(tb, simulator, "cp", controlPlanes))

	if workers > 0 {
		fmt.Fprintf(&config, `
resource "talosop_worker" "bench" {
  cluster       = talosop_control_plane.bench.cluster
  talos_version = %q
  machines = {
%s  }
}
`, sim.DefaultTalosVersion, machines(tb, simulator, "worker", workers))
	}

	w := newWorkspace(tb)
	w.Write("main.tf", config.String())
	w.Init()

	return &site{sim: simulator, workspace: w, config: config.String()}
}

// newWorkspace is one whose runs keep no logs, which would be measured, too.
func newWorkspace(tb testing.TB) *clitest.Workspace {
	tb.Helper()

	w := clitest.NewWorkspace(tb, clitest.Any(tb))
	w.Setenv("TF_LOG", "")

	return w
}

// upgradeWorkers writes a configuration with another version of Talos for the workers.
func (s *site) upgradeWorkers(version, maxUnavailable string) {
	at := strings.Index(s.config, "resource \"talosop_worker\"")
	workers := strings.Replace(s.config[at:], sim.DefaultTalosVersion, version, 1)
	workers = strings.Replace(workers, "  machines = {",
		fmt.Sprintf("  max_unavailable = %q\n  machines = {", maxUnavailable), 1)
	s.workspace.Write("main.tf", s.config[:at]+workers)
}

// mostAway watches the workers until it is asked how many were not ready at once.
func (s *site) mostAway() (most func() int) {
	return highest(func() int {
		away := 0

		for _, m := range s.sim.Machines() {
			if ready, _ := m.Ready(); !ready {
				away++
			}
		}

		return away
	})
}

// highest looks again and again until it is stopped, which tells the most that it saw.
func highest(look func() int) (stop func() int) {
	most := 0
	end := repeatedly(func() { most = max(most, look()) })

	return func() int {
		end()

		return most
	}
}

// repeatedly looks again and again until it is stopped.
func repeatedly(look func()) (stop func()) {
	var wg sync.WaitGroup

	done := make(chan struct{})

	wg.Go(func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()

		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				look()
			}
		}
	})

	return func() {
		close(done)
		wg.Wait()
	}
}

func machines(tb testing.TB, simulator *sim.Simulator, prefix string, n int) string {
	tb.Helper()

	added, err := simulator.AddMachines(tb.Context(), prefix, n, sim.MachineOptions{})
	if err != nil {
		tb.Fatal(err)
	}

	var out strings.Builder
	for _, m := range added {
		fmt.Fprintf(&out, "    %s = { address = %q, install = { disk = \"/dev/sda\" } }\n", m.Name(), m.Address())
	}

	return out.String()
}
