package main

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// peerConfig is a cluster of the official provider, which renders the configurations of both roles once. Workers depend
// on the bootstrap: an apply with more of them than are applied at a time would never end without it.
const peerConfig = `terraform {
  required_providers {
    talos = { source = "siderolabs/talos" }
  }
}
` + siteVariables + `
resource "talos_machine_secrets" "this" {
  talos_version = "v1.13"
}

data "talos_machine_configuration" "this" {
  for_each = toset(["controlplane", "worker"])

  cluster_name       = "bench"
  cluster_endpoint   = var.endpoint
  machine_type       = each.value
  machine_secrets    = talos_machine_secrets.this.machine_secrets
  talos_version      = "v1.13"
  kubernetes_version = "1.35.2"
  docs               = false
  examples           = false
  config_patches     = [yamlencode({ machine = { sysctls = { "net.core.somaxconn" = var.sysctl } } })]
}

resource "talos_machine_configuration_apply" "control_plane" {
  for_each = var.control_planes

  client_configuration        = talos_machine_secrets.this.client_configuration
  machine_configuration_input = data.talos_machine_configuration.this["controlplane"].machine_configuration
  node                        = each.value
}

resource "talos_machine_bootstrap" "this" {
  depends_on = [talos_machine_configuration_apply.control_plane]

  client_configuration = talos_machine_secrets.this.client_configuration
  node                 = values(var.control_planes)[0]
}

resource "talos_machine_configuration_apply" "worker" {
  for_each   = var.workers
  depends_on = [talos_machine_bootstrap.this]

  client_configuration        = talos_machine_secrets.this.client_configuration
  machine_configuration_input = data.talos_machine_configuration.this["worker"].machine_configuration
  node                        = each.value
}
`

// took is the cost of a command, on one side.
type took struct {
	wall, cpu   time.Duration
	connections int
	calls       int
}

// peerRounds is how often each side is measured, in turn.
const peerRounds = 3

// peer measures the same cluster of simulated machines under this provider and the official one, in turn, and
// returns the medians of the wall times and their ratio. Our create ends when all machines are Ready, theirs when
// the configurations are sent. `tools/testbed/build foreign` builds the official provider.
func peer(tb testing.TB, size int) []figure {
	tb.Helper()

	program := clitest.Asset(tb, officialProgram)
	sides := []func(*clitest.Workspace){
		func(w *clitest.Workspace) { w.Write("main.tf", clusterConfig) },
		func(w *clitest.Workspace) {
			addOfficial(w, program)
			w.Write("main.tf", peerConfig)
		},
	}
	measured := map[string][2][]took{}

	for range peerRounds {
		for i, write := range sides {
			for name, t := range lifeOn(tb, size, write) {
				both := measured[name]
				both[i] = append(both[i], t)
				measured[name] = both
			}
		}
	}

	var figures []figure

	for _, name := range []string{"create", "no-op plan", "another sysctl"} {
		ours, theirs := median(measured[name][0], wallOf), median(measured[name][1], wallOf)
		figures = append(figures, figure{
			measure: fmt.Sprintf("%d machines: %s, beside the official provider", size, name),
			value: fmt.Sprintf("%.1f s to %.1f s: %.2f; processor %.1f s to %.1f s; connections %d to %d; calls %d to %d",
				ours.wall.Seconds(), theirs.wall.Seconds(), ours.wall.Seconds()/theirs.wall.Seconds(), ours.cpu.Seconds(),
				theirs.cpu.Seconds(), ours.connections, theirs.connections, ours.calls, theirs.calls),
		})
	}

	return figures
}

// lifeOn creates a cluster on separate machines, plans nothing and changes one setting.
func lifeOn(tb testing.TB, size int, write func(*clitest.Workspace)) map[string]took {
	tb.Helper()

	delays := timing.TestDelays()

	s, err := sim.New(tb.Context(), sim.Options{Delays: &delays})
	if err != nil {
		tb.Fatal(err)
	}

	defer func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	}()

	w := newWorkspace(tb)
	write(w)

	site := newVariables(tb, s, size)
	measure := func(command ...string) took {
		s.ForgetCalls()
		run := w.MustRun(command...)

		return took{run.Took, run.CPU, s.Connections(), len(s.Calls())}
	}

	site.write(w)
	w.Init()

	out := map[string]took{"create": measure("apply", "-auto-approve")}
	settle(tb, s)

	out["no-op plan"] = measure("plan", "-detailed-exitcode")

	site.Sysctl = "2"
	site.write(w)

	out["another sysctl"] = measure("apply", "-auto-approve")

	return out
}

// settle waits until all machines are ready, which a create of the official provider does not.
func settle(tb testing.TB, s *sim.Simulator) {
	tb.Helper()

	for _, m := range s.Machines() {
		if err := m.AwaitReady(tb.Context()); err != nil {
			tb.Fatal(err)
		}
	}
}

// officialProgram is the official provider among the programs of the tests.
const officialProgram = "terraform-provider-talos"

// addOfficial has a workspace install the official provider, too.
func addOfficial(w *clitest.Workspace, program string) {
	w.AddProvider("siderolabs/talos", "0.12.0", program)
}

func wallOf(t took) time.Duration { return t.wall }

// median is the one in the middle by a time that each of them took.
func median[T any](all []T, by func(T) time.Duration) T {
	all = slices.SortedFunc(slices.Values(all), func(a, b T) int { return cmp.Compare(by(a), by(b)) })

	return all[len(all)/2]
}
