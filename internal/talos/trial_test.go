package talos_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// waiting is a control plane that waits for its bootstrap, and its configuration.
func waiting(
	t *testing.T, simulator *sim.Simulator, o owner, f *talos.Fleet,
) (m *sim.Machine, api *talos.Machine, config []byte) {
	t.Helper()

	m, api = member(t, simulator, o, f, machinetype.TypeControlPlane)
	observed(t, api, "waited for its bootstrap", waitsForBootstrap)

	return m, api, o.config(t, machinetype.TypeControlPlane)
}

// waitingContainer is a control plane in a container that waits for its bootstrap.
func waitingContainer(t *testing.T) *talos.Machine {
	t.Helper()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m := add(t, simulator, sim.MachineOptions{Platform: machined.Container})
	api := o.fleet(t, nil).Machine(cluster.Machine{Name: m.Name(), Wanted: cluster.Wanted{Address: m.Address().String()}})

	must(t, api.ApplyConfig(t.Context(), o.config(t, machinetype.TypeControlPlane), step.Maintenance, ""))
	observed(t, api, "waited for its bootstrap", waitsForBootstrap)

	return api
}

func withSysctl(t *testing.T, config []byte) []byte {
	t.Helper()

	return replaced(t, config, "machine:\n", "machine:\n    sysctls:\n        vm.swappiness: \"10\"\n")
}

// withFile changes what Talos reboots for.
func withFile(t *testing.T, config []byte) []byte {
	t.Helper()

	return replaced(t, config, "machine:\n",
		"machine:\n    files:\n        - path: /var/lib/x\n          op: create\n          content: sesame-open\n")
}

// runsWith waits until a configuration is the active one.
func runsWith(t *testing.T, api *talos.Machine, config []byte) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), longTimeout)
	defer cancel()

	must(t, wait.Until(ctx, 5*time.Millisecond, func(ctx context.Context) error {
		active, err := api.Configuration(ctx)
		if err == nil && !bytes.Equal(active, config) {
			err = errors.New("another configuration is active")
		}

		return err
	}))
}

func TestTryConfig_reverts(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, api, before := waiting(t, simulator, o, o.fleet(t, nil))
	after := withSysctl(t, before)

	must(t, api.TryConfig(t.Context(), after, m.UUID(), 10*time.Millisecond))
	runsWith(t, api, before)

	// Again within its time: Talos would go back to the tried configuration, that is never.
	simulator.ForgetCalls()

	for range 2 {
		must(t, api.TryConfig(t.Context(), after, m.UUID(), time.Hour))
		runsWith(t, api, after)
	}

	if n := len(simulator.CallsTo("ApplyConfiguration")); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
}

func TestTryConfig_isKept(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, api, before := waiting(t, simulator, o, o.fleet(t, nil))
	after := withSysctl(t, before)
	simulator.ForgetCalls()

	m.SetFault(fault.Fault{Method: "ApplyConfiguration", DropResponse: true})
	must(t, api.TryConfig(t.Context(), after, m.UUID(), time.Hour))

	if n := len(simulator.CallsTo("ApplyConfiguration")); n != 1 {
		t.Errorf("%d calls after a lost answer, want 1", n)
	}

	must(t, api.ApplyConfig(t.Context(), after, step.Member, m.UUID()))

	m.PowerOff()
	m.PowerOn()
	runsWith(t, api, after)
}

func TestTryConfig_errors(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, api, before := waiting(t, simulator, o, o.fleet(t, shortly))

	err := api.TryConfig(t.Context(), withFile(t, before), m.UUID(), time.Minute)
	if !errors.Is(err, talos.ErrRejected) || !wait.IsPermanent(err) || strings.Contains(err.Error(), "sesame") {
		t.Errorf("a change that needs a reboot: %v", err)
	}

	m.SetFault(fault.Fault{Method: "ApplyConfiguration", Cut: true})

	err = api.TryConfig(t.Context(), withSysctl(t, before), m.UUID(), time.Minute)
	if !errors.Is(err, talos.ErrUnreachable) || wait.IsPermanent(err) ||
		!strings.Contains(err.Error(), "another configuration is active") {
		t.Errorf("a lost request: %v", err)
	}

	runsWith(t, api, before)
}

func TestStageConfig_takesEffectAtTheNextBoot(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, api, before := waiting(t, simulator, o, o.fleet(t, nil))
	after, boots := withFile(t, before), m.Boots()

	m.SetFault(fault.Fault{Method: "ApplyConfiguration", DropResponse: true})

	if err := api.StageConfig(t.Context(), withSysctl(t, before), m.UUID()); !errors.Is(err, talos.ErrUnreachable) ||
		wait.IsPermanent(err) {
		t.Errorf("a lost answer: %v", err)
	}

	for range 2 {
		must(t, api.StageConfig(t.Context(), after, m.UUID()))
	}

	runsWith(t, api, before)

	if m.Boots() != boots {
		t.Errorf("%d boots", m.Boots()-boots)
	}

	must(t, api.Reboot(t.Context(), m.UUID()))
	runsWith(t, api, after)

	err := api.StageConfig(t.Context(), replaced(t, before, "machine:\n", "machine:\n    secretly: sesame-open\n"),
		m.UUID())
	if !errors.Is(err, talos.ErrRejected) || !wait.IsPermanent(err) || strings.Contains(err.Error(), "sesame") {
		t.Errorf("an invalid configuration: %v", err)
	}
}

// What a machine would reboot for is asked once its configuration is not the wanted one.
func TestObserve_rebootFor(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	failing := errors.New("a form that is not known")

	var asked string

	f := o.fleet(t, func(o *talos.Options) {
		o.RebootFor = func(machine, talos string, active []byte) ([]string, error) {
			asked = machine + " " + talos
			if bytes.Contains(active, []byte("swappiness")) {
				return nil, failing
			}

			return []string{"machine.files"}, nil
		}
	})

	m, api, config := waiting(t, simulator, o, f)
	want := wanted(m)

	digest := api.Observe(t.Context()).ConfigDigest
	if asked != "" || digest == "" {
		t.Fatalf("asked for %q without a wanted configuration, digest %q", asked, digest)
	}

	for wish, fields := range map[string]int{digest: 0, "another": 1} {
		want.ConfigDigest = wish

		if got := f.Machine(want).Observe(t.Context()); len(got.RebootFor) != fields || got.Access != step.Member {
			t.Errorf("wanted %s: %+v", wish, got)
		}
	}

	if asked != m.Name()+" v1.13.0" {
		t.Errorf("asked for %q", asked)
	}

	must(t, api.ApplyConfig(t.Context(), withSysctl(t, config), step.Member, ""))

	want.ConfigDigest = "another"
	if got := f.Machine(want).Observe(t.Context()); !strings.Contains(got.Cause, failing.Error()) {
		t.Errorf("with an error: %+v", got)
	}
}
