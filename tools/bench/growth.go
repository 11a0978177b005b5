package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// siteVariables are the variables of a site in a configuration.
const siteVariables = `
variable "endpoint" { type = string }
variable "control_planes" { type = map(string) }
variable "workers" { type = map(string) }
variable "sysctl" { type = string }
`

const talosVersion = `
variable "talos_version" {
  type    = string
  default = "v1.13.0"
}
`

// clusterConfig is one talosop_cluster, by the variables of a site.
const clusterConfig = head + siteVariables + talosVersion + `
resource "talosop_cluster" "this" {
  mode                   = "metal"
  name                   = "bench"
  endpoint               = var.endpoint
  secrets                = talosop_secrets.bench.bundle
  talos_version          = var.talos_version
  kubernetes_version     = "v1.35.2"
  deletion_protection    = false
  cluster_config_patches = [yamlencode({ machine = { sysctls = { "net.core.somaxconn" = var.sysctl } } })]

  control_plane = {
    install  = { disk = "/dev/sda" }
    machines = { for name, address in var.control_planes : name => { address = address } }
  }

  workers = {
    all = {
      install         = { disk = "/dev/sda" }
      max_unavailable = "10%"
      machines        = { for name, address in var.workers : name => { address = address } }
    }
  }
}
`

// machinesConfig is the same cluster with a talosop_machine for each machine. Workers depend on the control planes,
// which would have to wait for one of the places that are taken by workers that wait for them.
const machinesConfig = head + siteVariables + talosVersion + `
locals {
  cluster = {
    name               = "bench"
    endpoint           = var.endpoint
    secrets            = talosop_secrets.bench.bundle
    talos_endpoints    = values(var.control_planes)
    kubernetes_version = "v1.35.2"
    version_contract   = "v1.13"
  }

  config_patches = [yamlencode({ machine = { sysctls = { "net.core.somaxconn" = var.sysctl } } })]
}

resource "talosop_machine" "control_plane" {
  for_each = var.control_planes

  cluster             = local.cluster
  name                = each.key
  role                = "controlplane"
  address             = each.value
  bootstrap           = each.key == "cp-1"
  talos_version       = var.talos_version
  install             = { disk = "/dev/sda" }
  deletion_protection = false
  config_patches      = local.config_patches
}

resource "talosop_machine" "worker" {
  for_each   = var.workers
  depends_on = [talosop_machine.control_plane]

  cluster             = local.cluster
  name                = each.key
  role                = "worker"
  address             = each.value
  talos_version       = var.talos_version
  install             = { disk = "/dev/sda" }
  deletion_protection = false
  config_patches      = local.config_patches
}
`

// variables are the values of such a configuration for a site.
type variables struct {
	tb testing.TB

	Endpoint      string            `json:"endpoint"`
	ControlPlanes map[string]string `json:"control_planes"`
	Workers       map[string]string `json:"workers"`
	Sysctl        string            `json:"sysctl"`
	TalosVersion  string            `json:"talos_version,omitempty"`
}

// newVariables makes the machines of a site: three control planes, and workers.
func newVariables(tb testing.TB, s *sim.Simulator, size int) *variables {
	tb.Helper()

	endpoint, err := s.Endpoint()
	if err != nil {
		tb.Fatal(err)
	}

	return &variables{tb: tb, Endpoint: endpoint, Sysctl: "1", ControlPlanes: addresses(tb, s, "cp", 3),
		Workers: addresses(tb, s, "worker", size-3)}
}

// addresses adds machines, and returns their addresses, by name.
func addresses(tb testing.TB, s *sim.Simulator, prefix string, n int) map[string]string {
	tb.Helper()

	added, err := s.AddMachines(tb.Context(), prefix, n, sim.MachineOptions{})
	if err != nil {
		tb.Fatal(err)
	}

	all := map[string]string{}
	for _, m := range added {
		all[m.Name()] = m.Address().String()
	}

	return all
}

func (v *variables) write(w *clitest.Workspace) {
	v.tb.Helper()

	content, err := json.Marshal(v)
	if err != nil {
		v.tb.Fatal(err)
	}

	w.Write("site.auto.tfvars.json", string(content))
}

// life is one talosop_cluster and its measured changes.
type life struct {
	tb        testing.TB
	sim       *sim.Simulator
	workspace *clitest.Workspace
	figures   []figure
	size      int
}

// growth measures each change of one talosop_cluster of that many machines.
func growth(tb testing.TB, size int) []figure {
	tb.Helper()

	l, site := grown(tb, size, clusterConfig)

	site.TalosVersion = newer
	site.write(l.workspace)
	l.measure("rolling upgrade, 10 %", "apply", "-auto-approve")
	l.measure("destroy", "destroy", "-auto-approve")

	return l.figures
}

// eachMachine is growth of as many talosop_machine, which are upgraded one by one and have no pools.
func eachMachine(tb testing.TB, size int) []figure {
	tb.Helper()

	l, _ := grown(tb, size, machinesConfig)
	l.measure("destroy", "destroy", "-auto-approve")

	return l.figures
}

// grown creates a cluster, plans nothing, changes a setting of each machine, repairs some and adds others.
func grown(tb testing.TB, size int, config string) (*life, *variables) {
	tb.Helper()

	delays := timing.TestDelays()
	l := &life{tb: tb, sim: sim.ForTest(tb, sim.Options{Delays: &delays}), size: size, workspace: newWorkspace(tb)}
	site := newVariables(tb, l.sim, size)

	l.workspace.Write("main.tf", config)
	site.write(l.workspace)
	l.workspace.Init()
	l.measure("create", "apply", "-auto-approve")
	l.measure("no-op plan", "plan", "-detailed-exitcode")

	site.Sysctl = "2"
	site.write(l.workspace)
	l.measure("another sysctl on each, at once", "apply", "-auto-approve")
	l.repair(min(10, size/10))
	l.grow(site, max(1, size/10))

	return l, site
}

// repair wipes workers, and restores them with an apply.
func (l *life) repair(wiped int) {
	l.tb.Helper()

	for i := range wiped {
		m := l.sim.Machine(fmt.Sprintf("worker-%d", i+1))
		m.Wipe()
		m.PowerOn()

		if err := m.AwaitStage(l.tb.Context(), sim.StageMaintenance); err != nil {
			l.tb.Fatal(err)
		}
	}

	l.measure(fmt.Sprintf("repair of %d that were wiped", wiped), "apply", "-auto-approve")
}

// grow adds workers.
func (l *life) grow(site *variables, more int) {
	l.tb.Helper()
	maps.Copy(site.Workers, addresses(l.tb, l.sim, "more", more))
	site.write(l.workspace)

	l.size += more
	l.measure(fmt.Sprintf("growth by %d", more), "apply", "-auto-approve")
}

// measure runs a command of the CLI, which has to succeed, and adds its cost.
func (l *life) measure(name string, command ...string) {
	l.tb.Helper()
	l.sim.ForgetCalls()

	stop := watch(l.workspace.Dir)
	run := l.workspace.MustRun(command...)
	took := stop()
	average, most := callsPerMachine(l.sim.Calls(), l.size)

	state, err := os.ReadFile(filepath.Join(l.workspace.Dir, "terraform.tfstate"))
	if err != nil {
		l.tb.Fatal(err)
	}

	l.figures = append(l.figures, figure{
		measure: fmt.Sprintf("%d machines: %s", l.size, name),
		value: strings.Join([]string{
			run.Took.Round(100 * time.Millisecond).String(),
			fmt.Sprintf("provider %.1f s of processor", took.cpu.Seconds()),
			fmt.Sprintf("CLI %.1f s", (run.CPU - took.cpu).Seconds()),
			fmt.Sprintf("%.1f calls a machine, most %d", average, most),
			fmt.Sprintf("%.1f connections", float64(l.sim.Connections())/float64(l.size)),
			fmt.Sprintf("%d MiB", took.mib),
			fmt.Sprintf("state %d KiB", len(state)/1024),
		}, ", "),
	})
	fmt.Fprintln(os.Stderr, "bench:", l.figures[len(l.figures)-1])
}
