package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// life is one talosop_cluster that is taken through its life.
type life struct {
	tb        testing.TB
	sim       *sim.Simulator
	workspace *clitest.Workspace
	endpoint  string
	figures   []figure

	planes, workers string // the machines, as configuration
	size            int
	version, sysctl string
}

// growth tells what each change of one talosop_cluster of that many machines costs.
func growth(tb testing.TB, size int) []figure {
	tb.Helper()

	delays := timing.TestDelays()
	l := &life{tb: tb, sim: sim.ForTest(tb, sim.Options{Delays: &delays}), version: sim.DefaultTalosVersion, sysctl: "1"}

	var err error
	if l.endpoint, err = l.sim.Endpoint(); err != nil {
		tb.Fatal(err)
	}

	l.workspace = clitest.NewWorkspace(tb, clitest.Any(tb))
	l.workspace.Setenv("TF_LOG", "")

	l.planes, l.workers, l.size = machines(tb, l.sim, "cp", 3), machines(tb, l.sim, "worker", size-3), size
	l.write()
	l.workspace.Init()

	l.measure("create", "apply", "-auto-approve")
	l.measure("no-op plan", "plan", "-detailed-exitcode")

	l.sysctl = "2"
	l.write()
	l.measure("another sysctl on each, at once", "apply", "-auto-approve")

	more := max(1, size/10)
	l.workers += machines(tb, l.sim, "more", more)
	l.size += more
	l.write()
	l.measure(fmt.Sprintf("growth by %d", more), "apply", "-auto-approve")

	l.version = newer
	l.write()
	l.measure("rolling upgrade, 10 %", "apply", "-auto-approve")
	l.measure("destroy", "destroy", "-auto-approve")

	return l.figures
}

// write writes the configuration of the cluster.
func (l *life) write() {
	l.tb.Helper()

	l.workspace.Write("main.tf", head+fmt.Sprintf(`
resource "talosop_cluster" "bench" {
  mode                   = "metal"
  name                   = "bench"
  endpoint               = %q
  secrets                = talosop_secrets.bench.bundle
  talos_version          = %q
  kubernetes_version     = "v1.35.2"
  deletion_protection    = false
  cluster_config_patches = [yamlencode({ machine = { sysctls = { "net.core.somaxconn" = %q } } })]

  control_plane = {
    machines = {
%s    }
  }

  workers = {
    all = {
      max_unavailable = "10%%"
      machines = {
%s      }
    }
  }
}
`, l.endpoint, l.version, l.sysctl, l.planes, l.workers))
}

// measure runs a command of the CLI, which has to end well, and adds what it took.
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
