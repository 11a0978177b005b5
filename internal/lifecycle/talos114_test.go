package lifecycle_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

const (
	talos114 = "v1.14.1"

	// newFile is a patch that takes effect with a boot on every Talos; 1.14 does not report that.
	newFile = "machine: {files: [{path: /var/x, op: create, content: x, permissions: 0o600}]}"
	// newEnvironment is a patch that Talos 1.14 applies live, and for which 1.13 reboots.
	newEnvironment = needsReboot
)

// on114 makes a site of machines that run Talos 1.14, with configurations of contract v1.13.
func on114(t *testing.T, controlPlanes, workers int) *site {
	t.Helper()

	s := newSite(t, controlPlanes, workers, sim.Options{TalosVersion: talos114})
	for i, m := range s.want.Machines {
		config := s.renderFor(m.Role, "v1.13", talos114)
		s.configs[m.Name], s.want.Machines[i].ConfigDigest = config.Bytes, config.Digest
		s.want.Machines[i].TalosVersion = talos114
	}

	s.create()

	return s
}

// Talos 1.14 never reboots for a configuration, and never reports that a reboot is missing. The planner decides it,
// and the reboot rolls like any other disruption.
func TestConfiguration_onTalosThatNeverReboots(t *testing.T) {
	t.Parallel()

	s := on114(t, 3, 1)
	s.guard(1)

	s.reconfigure(newEnvironment)
	s.converge()

	if got := s.rebooted(); len(got) > 0 {
		t.Errorf("rebooted %v for what Talos follows by itself", got)
	}

	s.reconfigure(newFile)

	forecast, _ := cluster.Forecast(s.want, s.assumed(), s.policy)
	result := s.converge()
	s.schedulable()

	if got, want := s.rebooted(), []string{"cp-1", "cp-2", "cp-3", "w-1"}; !slices.Equal(got, want) {
		t.Errorf("rebooted %v, want %v", got, want)
	}

	if got, want := texts(result.Done), texts(forecast); !slices.Equal(got, want) {
		t.Errorf("done:\n%s\nforecast:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	for _, call := range s.sim.CallsTo("ApplyConfiguration") {
		if call.Detail == "REBOOT" {
			t.Errorf("%s was asked to reboot for a configuration, which Talos 1.14 does not know", call.Machine)
		}
	}
}

// A running cluster is upgraded from 1.13 to 1.14 and keeps its contract. A configuration in the same apply follows
// the rules of the Talos that it meets.
func TestUpgrade_from113To114(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 1, sim.Options{})
	s.create()
	s.guard(1)
	s.upgrade(talos114)
	s.reconfigure(newEnvironment)

	s.converge()
	s.runsEverywhere(talos114)
	s.schedulable()

	if got, want := s.rebooted(), []string{"cp-1", "cp-2", "cp-3", "w-1"}; !slices.Equal(got, want) {
		t.Errorf("rebooted %v, want each machine once: %v", got, want)
	}

	if again := s.converge(); len(again.Done) > 0 {
		t.Errorf("a second run did %v", again.Done)
	}
}

// Removed control planes are wiped and wait in maintenance mode, as on every Talos.
func TestScale_downOnTalos114(t *testing.T) {
	t.Parallel()

	s := on114(t, 3, 1)
	s.remove("cp-3", "w-1")
	s.converge()

	for _, name := range []string{"cp-3", "w-1"} {
		if m := s.sim.Machine(name); m.Configured() {
			t.Errorf("%s still has a configuration", name)
		}
	}
}
