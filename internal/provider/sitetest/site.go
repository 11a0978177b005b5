package sitetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// Site is simulated machines and their configuration.
type Site struct {
	*sim.Simulator

	// URL is the endpoint of the Kubernetes API.
	URL          string
	ControlPlane []*sim.Machine
	Workers      []*sim.Machine
}

// New is a site whose machines wait in maintenance mode; it ends with the test.
func New(t *testing.T, controlPlanes, workers int) *Site {
	t.Helper()

	return NewWith(t, sim.Options{}, controlPlanes, workers)
}

// NewWith is New for a simulator with options.
func NewWith(t *testing.T, opts sim.Options, controlPlanes, workers int) *Site {
	t.Helper()

	s := &Site{Simulator: sim.ForTest(t, opts)}

	var err error
	if s.URL, err = s.Endpoint(); err != nil {
		t.Fatal(err)
	}

	if s.ControlPlane, err = s.AddMachines(t.Context(), "cp", controlPlanes, sim.MachineOptions{}); err != nil {
		t.Fatal(err)
	}

	if s.Workers, err = s.AddMachines(t.Context(), "w", workers, sim.MachineOptions{}); err != nil {
		t.Fatal(err)
	}

	return s
}

// RolesUsed lists the requests to members of the cluster by set of roles: methods, and resources by their type.
func (s *Site) RolesUsed() map[string][]string {
	found := map[string][]string{}

	for _, c := range s.Calls() {
		if c.Personality != fault.Configured {
			continue
		}

		what := c.Method
		if kind, _, resource := strings.Cut(c.Detail, ".talos.dev"); resource {
			what, _, _ = strings.Cut(kind, ".")
		}

		if !slices.Contains(found[c.Roles], what) {
			found[c.Roles] = append(found[c.Roles], what)
		}
	}

	for _, calls := range found {
		slices.Sort(calls)
	}

	return found
}

// AwaitReady waits until all machines work again.
func (s *Site) AwaitReady(t *testing.T) {
	t.Helper()

	for _, m := range s.Machines() {
		if err := m.AwaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Addresses are those of machines by name, as in the variables of the quickstart and import IDs.
func Addresses(machines []*sim.Machine) map[string]string {
	out := map[string]string{}
	for _, m := range machines {
		out[m.Name()] = m.Address().String()
	}

	return out
}

// ExpectMembers checks how many members etcd has.
func (s *Site) ExpectMembers(t *testing.T, want int) {
	t.Helper()

	members, err := s.EtcdMembers(t.Context())
	if err != nil || len(members) != want {
		t.Errorf("etcd has the members %v (%v), want %d", members, err, want)
	}
}

// ExpectUntouched checks that a cluster is running and that no machine was reset.
func (s *Site) ExpectUntouched(t *testing.T) {
	t.Helper()

	for _, method := range []string{"Reset", "EtcdLeaveCluster", "EtcdRemoveMemberByID"} {
		if calls := s.CallsTo(method); len(calls) > 0 {
			t.Errorf("machines were asked to %s: %v", method, calls)
		}
	}

	s.ExpectMembers(t, len(s.ControlPlane))
}

// ExpectNothingSent fails when a call changed a machine since the last ForgetCalls.
func (s *Site) ExpectNothingSent(t *testing.T) {
	t.Helper()

	for _, method := range []string{"ApplyConfiguration", "Bootstrap", "EtcdRecover", "Reset", "Reboot", "MetaWrite"} {
		if calls := s.CallsTo(method); len(calls) > 0 {
			t.Errorf("%s was called: %v", method, calls)
		}
	}
}

// ExpectReset checks that no machine of a site is left in a cluster, and that there was one etcd.
func (s *Site) ExpectReset(t *testing.T) {
	t.Helper()

	s.ExpectBlank(t)

	if got := len(s.CallsTo("Bootstrap")); got != 1 {
		t.Errorf("etcd was bootstrapped %d times", got)
	}
}

// ExpectBlank checks that every machine was reset.
func (s *Site) ExpectBlank(t *testing.T) {
	t.Helper()

	for _, m := range s.Machines() {
		if m.Configured() || m.Stage() != sim.StageMaintenance {
			t.Errorf("after destroy %s is %s", m.Name(), m.Stage())
		}
	}
}

// Wipe deletes the data of every control plane.
func (s *Site) Wipe(t *testing.T) {
	t.Helper()

	for _, m := range s.ControlPlane {
		m.Wipe()
		m.PowerOn()
	}

	for _, m := range s.ControlPlane {
		if err := m.AwaitStage(t.Context(), sim.StageMaintenance); err != nil {
			t.Fatal(err)
		}
	}

	s.ForgetCalls()
}
