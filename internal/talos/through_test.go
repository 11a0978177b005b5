package talos_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

// shielded is a cluster of two control planes and a worker whose configured API is reached only through them, and
// a record of what was dialed.
type shielded struct {
	simulator     *sim.Simulator
	owner         owner
	controlPlanes []*sim.Machine
	worker        *sim.Machine

	mu     sync.Mutex
	dialed []string
}

func newShielded(t *testing.T) *shielded {
	t.Helper()

	s := &shielded{simulator: site(t, sim.Options{TalosVersion: "v1.13.0"})}
	s.owner = newOwner(t, s.simulator)

	f := s.owner.fleet(t, nil)
	first, api, config := waiting(t, s.simulator, s.owner, f)
	must(t, api.Bootstrap(t.Context()))
	observed(t, api, "became ready", settled)

	second := add(t, s.simulator, sim.MachineOptions{})
	must(t, f.Machine(wanted(second)).ApplyConfig(t.Context(), config, step.Maintenance, ""))
	observed(t, f.Machine(wanted(second)), "joined", settled)

	s.controlPlanes = []*sim.Machine{first, second}
	s.worker = s.addWorker(t)
	s.simulator.ForgetCalls()

	return s
}

// addWorker is one more worker behind the control planes.
func (s *shielded) addWorker(t *testing.T) *sim.Machine {
	t.Helper()

	m, api := member(t, s.simulator, s.owner, s.owner.fleet(t, nil), machinetype.TypeWorker)
	observed(t, api, "joined", settled)
	m.AdmitOnly(s.controlPlanes...)

	return m
}

// fleet goes through the control planes, in their order.
func (s *shielded) fleet(t *testing.T, change func(*talos.Options)) *talos.Fleet {
	t.Helper()

	return s.owner.fleet(t, func(o *talos.Options) {
		for _, m := range s.controlPlanes {
			o.ControlPlanes = append(o.ControlPlanes, m.Address().String())
		}

		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			s.mu.Lock()
			s.dialed = append(s.dialed, address)
			s.mu.Unlock()

			return (&net.Dialer{}).DialContext(ctx, network, address)
		}

		if change != nil {
			change(o)
		}
	})
}

// wanted is the worker, or the machine in its place.
func (s *shielded) wanted(m *sim.Machine) cluster.Machine {
	through := wanted(m)
	through.Role, through.Through = step.Worker, true

	return through
}

// reached reports whether anything was dialed at a machine.
func (s *shielded) reached(m *sim.Machine) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.ContainsFunc(s.dialed, func(at string) bool { return strings.HasPrefix(at, m.Address().String()+":") })
}

// What is done to a machine behind control planes is done through them, streams included, and nothing is dialed at
// the machine.
func TestThrough_isTheOnlyRoute(t *testing.T) {
	t.Parallel()

	s := newShielded(t)
	api := s.fleet(t, nil).Machine(s.wanted(s.worker))

	seen := observed(t, api, "answered", settled)
	if seen.Role != step.Worker || seen.UUID != s.worker.UUID() || seen.ConfigDigest == "" || seen.FoundAt != "" ||
		seen.NodeName != s.worker.Hostname() {
		t.Errorf("state %+v", seen)
	}

	must(t, api.ApplyConfig(t.Context(), withSysctl(t, s.owner.config(t, machinetype.TypeWorker)), step.Member,
		s.worker.UUID()))

	boot := seen.BootID
	must(t, api.Reboot(t.Context(), s.worker.UUID()))
	observed(t, api, "rebooted", func(now step.MachineState) bool { return settled(now) && now.BootID != boot })

	must(t, api.PullImage(t.Context(), newer))
	must(t, api.Upgrade(t.Context(), newer, s.worker.UUID(), confirmed))
	observed(t, api, "came back with the new version",
		func(now step.MachineState) bool { return settled(now) && now.TalosVersion == "v1.13.1" })

	resources, release, err := api.Resources(t.Context())
	must(t, err)
	release()

	if resources == nil {
		t.Error("no resources")
	}

	must(t, api.Reset(t.Context(), false, wipe.Reset{}))
	observed(t, api, "was reset", func(now step.MachineState) bool { return now.Access == step.Unreachable })

	if s.reached(s.worker) || !s.reached(s.controlPlanes[0]) {
		t.Errorf("dialed %v", s.dialed)
	}

	for _, call := range s.simulator.Calls() {
		if call.Mutates() && call.Machine != s.worker.Name() {
			t.Errorf("%s changed %s", call.Method, call.Machine)
		}
	}
}

// Configurations that are read with credentials of their own are read in the same way.
func TestThrough_withCredentialsOfTheirOwn(t *testing.T) {
	t.Parallel()

	s := newShielded(t)
	api := s.fleet(t, func(o *talos.Options) {
		o.Credentials, o.ForConfigurations = s.owner.credentialsAs(t, "os:reader"), s.owner.credentials(t)
		o.TrustNodeNames = true
	}).Machine(s.wanted(s.worker))

	if seen := observed(t, api, "answered", settled); seen.ConfigDigest == "" || s.reached(s.worker) {
		t.Errorf("state %+v, dialed %v", seen, s.dialed)
	}
}

// A control plane that goes away is no reason to lose the machines behind it, and none that goes away says anything
// about them.
func TestThrough_controlPlanesThatGo(t *testing.T) {
	t.Parallel()

	s := newShielded(t)
	api := s.fleet(t, func(o *talos.Options) { shortly(o) }).Machine(s.wanted(s.worker))
	observed(t, api, "answered", settled)

	s.controlPlanes[0].PowerOff()
	observed(t, api, "answered through the second one", settled)

	s.simulator.SetOnCall(func(call fault.Call) error {
		if call.Method == "Reboot" {
			s.controlPlanes[1].PowerOff()

			return errors.New("nothing is rebooted")
		}

		return nil
	})

	if err := api.Reboot(t.Context(), s.worker.UUID()); err == nil || wait.IsPermanent(err) {
		t.Errorf("a machine that was not asked is taken for one that went down: %v", err)
	}

	seen := api.Observe(t.Context())
	if seen.Access != step.Unreachable || !strings.Contains(seen.Cause, s.controlPlanes[0].Address().String()) ||
		!strings.Contains(seen.Cause, s.controlPlanes[1].Address().String()) {
		t.Errorf("state %+v", seen)
	}

	s.simulator.SetOnCall(nil)
	s.controlPlanes[1].PowerOn()
	observed(t, api, "answered again", settled)
}

// An upgrade whose control plane goes away in the middle is made good by the same call, through another one.
func TestThrough_upgradeThatLosesItsControlPlane(t *testing.T) {
	t.Parallel()

	s := newShielded(t)
	api := s.fleet(t, nil).Machine(s.wanted(s.worker))

	var once sync.Once

	s.simulator.SetOnCall(func(call fault.Call) error {
		if call.Method == "Upgrade" {
			once.Do(s.controlPlanes[0].PowerOff)
		}

		return nil
	})

	if err := api.Upgrade(t.Context(), newer, s.worker.UUID(), confirmed); !errors.Is(err, talos.ErrUnreachable) ||
		wait.IsPermanent(err) || !strings.Contains(err.Error(), s.controlPlanes[0].Address().String()) {
		t.Fatalf("first attempt: %v", err)
	}

	observed(t, api, "answered through the second one", settled)
	must(t, retried(t, func(ctx context.Context) error {
		return api.Upgrade(ctx, newer, s.worker.UUID(), confirmed)
	}))
	// Its etcd has lost its quorum, so that no node becomes ready.
	observed(t, api, "came back with the new version",
		func(now step.MachineState) bool { return now.TalosVersion == "v1.13.1" })
}

// A machine other than the wanted one receives nothing: neither another one of the cluster, nor one of another
// cluster, nor a server in place of a control plane.
func TestThrough_toAnotherMachine(t *testing.T) {
	t.Parallel()

	s := newShielded(t)
	other := s.addWorker(t)
	waits := add(t, s.simulator, sim.MachineOptions{})
	theirs := ownerOf(t, s.simulator, theirSecrets)
	foreign, _, _ := waiting(t, s.simulator, theirs, theirs.fleet(t, nil))

	at := func(m *sim.Machine) cluster.Machine {
		meant := s.wanted(s.worker)
		meant.Address = m.Address().String()

		return meant
	}
	by := func(machines ...*sim.Machine) func(*talos.Options) {
		return func(o *talos.Options) {
			shortly(o)

			o.ControlPlanes = nil
			for _, m := range machines {
				o.ControlPlanes = append(o.ControlPlanes, m.Address().String())
			}
		}
	}

	s.simulator.ForgetCalls()

	for name, test := range map[string]struct {
		fleet *talos.Fleet
		meant cluster.Machine
		class error
		text  string
	}{
		"another worker":                 {s.fleet(t, nil), at(other), talos.ErrForeign, "expected " + s.worker.UUID()},
		"a machine of another cluster":   {s.fleet(t, nil), at(foreign), talos.ErrUnreachable, "through control plane"},
		"a machine that waits":           {s.fleet(t, nil), at(waits), talos.ErrUnreachable, "through control plane"},
		"through a worker":               {s.fleet(t, by(other)), at(s.worker), talos.ErrUnreachable, other.Address().String()},
		"through a machine that waits":   {s.fleet(t, by(waits)), at(s.worker), talos.ErrUnreachable, "maintenance mode"},
		"through one of another cluster": {s.fleet(t, by(foreign)), at(s.worker), talos.ErrUnreachable, "wrong identity"},
		"without a control plane":        {s.fleet(t, by()), at(s.worker), talos.ErrUnreachable, "no known control plane"},
		"itself as its control plane":    {s.fleet(t, by(waits)), at(waits), talos.ErrUnreachable, "maintenance mode"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.fleet.Machine(test.meant).ApplyConfig(t.Context(), s.owner.config(t, machinetype.TypeWorker),
				step.Member, s.worker.UUID())
			if !errors.Is(err, test.class) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("error %v, want %v and %q", err, test.class, test.text)
			}
		})
	}

	if got := changes(s.simulator); len(got) > 0 {
		t.Errorf("calls %v, want none", got)
	}
}

// A machine that waits for its configuration gets it at its maintenance address, and is reached through control planes
// from then on.
func TestThrough_fromMaintenance(t *testing.T) {
	t.Parallel()

	s := newShielded(t)
	waits := add(t, s.simulator, sim.MachineOptions{})
	waits.AdmitOnly(s.controlPlanes...)

	wanted := s.wanted(waits)
	wanted.WaitsAt = waits.Address().String()
	api := s.fleet(t, nil).Machine(wanted)

	if seen := api.Observe(t.Context()); seen.Access != step.Maintenance || seen.UUID != waits.UUID() {
		t.Fatalf("state %+v", seen)
	}

	must(t, api.ApplyConfig(t.Context(), s.owner.config(t, machinetype.TypeWorker), step.Maintenance, waits.UUID()))
	observed(t, api, "joined", settled)
}
