package talos_test

import (
	"context"
	"errors"
	"testing"
	"time"

	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"google.golang.org/grpc/codes"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

func TestReboot_withFaults(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		fault     fault.Fault
		first     error
		permanent bool
		calls     int
	}{
		"an answer":      {calls: 1},
		"a lost answer":  {fault: fault.Fault{DropResponse: true}, calls: 1},
		"a lost request": {fault: fault.Fault{Cut: true}, first: talos.ErrInProgress, calls: 2},
		"unavailable":    {fault: fault.Fault{Code: codes.Unavailable}, first: talos.ErrUnreachable, calls: 2},
		"no role for it": {fault: fault.Fault{Code: codes.PermissionDenied}, first: talos.ErrNotAuthorized, permanent: true,
			calls: 2},
		"no way to it": {fault: fault.Fault{Code: codes.FailedPrecondition}, first: talos.ErrUnsupported, permanent: true,
			calls: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulator := site(t, sim.Options{})
			o := newOwner(t, simulator)
			m, api, _ := waiting(t, simulator, o, o.fleet(t, nil))
			boot := m.BootID()

			if test.fault != (fault.Fault{}) {
				test.fault.Method = "Reboot"
				m.SetFault(test.fault)
			}

			err := o.fleet(t, shortlyUnless(test.first == nil)).Machine(wanted(m)).Reboot(t.Context(), m.UUID())
			if !errors.Is(err, test.first) || wait.IsPermanent(err) != test.permanent {
				t.Fatalf("first attempt: %v, want %v", err, test.first)
			}

			if test.first != nil {
				must(t, api.Reboot(t.Context(), m.UUID()))
			}

			observed(t, api, "came back in another boot", func(s step.MachineState) bool {
				return waitsForBootstrap(s) && s.BootID != "" && s.BootID != boot && s.BootID == m.BootID()
			})

			if n := len(simulator.CallsTo("Reboot")); n != test.calls {
				t.Errorf("%d calls, want %d", n, test.calls)
			}
		})
	}
}

// A machine that is going down is left alone, and one that is busy otherwise is not disturbed.
func TestReboot_meetsAnotherSequence(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		begin func(context.Context, *talos.Machine) error
		class error
	}{
		"a reboot": {begin: func(ctx context.Context, api *talos.Machine) error { return api.Reboot(ctx, "") }},
		"a reset": {begin: func(ctx context.Context, api *talos.Machine) error { return api.Reset(ctx, false, wipe.Reset{}) },
			class: talos.ErrInProgress},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			delays := timing.TestDelays()
			delays.Shutdown = time.Hour

			simulator := site(t, sim.Options{Delays: &delays})
			o := newOwner(t, simulator)
			_, api, _ := waiting(t, simulator, o, o.fleet(t, nil))

			must(t, test.begin(t.Context(), api))
			simulator.ForgetCalls()

			if err := api.Reboot(t.Context(), ""); !errors.Is(err, test.class) || wait.IsPermanent(err) {
				t.Errorf("err = %v, want %v", err, test.class)
			}

			if n := len(simulator.CallsTo("Reboot")); n != 0 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

func TestUpgrade_ofAContainerIsRefused(t *testing.T) {
	t.Parallel()

	err := waitingContainer(t).Upgrade(t.Context(), newer, "", confirmed)
	if !errors.Is(err, talos.ErrUnsupported) || !wait.IsPermanent(err) {
		t.Errorf("upgrade: %v", err)
	}
}

// A container ends, and its runtime starts it again: with the configuration that was staged, and with its data and
// address.
func TestReboot_ofAContainer(t *testing.T) {
	t.Parallel()

	for name, staged := range map[string]bool{"with a staged configuration": true, "with the one it has": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulator := site(t, sim.Options{})
			o := newOwner(t, simulator)
			m := add(t, simulator, sim.MachineOptions{Platform: machined.Container})
			api := o.fleet(t, nil).Machine(cluster.Machine{Name: m.Name(), Wanted: cluster.Wanted{Address: m.Address().String()}})
			next := o.config(t, machinetype.TypeControlPlane)

			must(t, api.ApplyConfig(t.Context(), next, step.Maintenance, ""))
			observed(t, api, "waited for its bootstrap", waitsForBootstrap)

			if staged {
				next = withFile(t, next)
				must(t, api.StageConfig(t.Context(), next, ""))
			}

			must(t, api.Reboot(t.Context(), ""))

			select {
			case <-m.Off():
			case <-time.After(longTimeout):
				t.Fatal("it goes on")
			}

			m.PowerOn()

			digest, err := machineconfig.Digest(next)
			must(t, err)
			observed(t, api, "started again", func(s step.MachineState) bool {
				return s.Access == step.Member && s.ConfigDigest == digest && waitsForBootstrap(s)
			})
		})
	}
}

// From 1.14 on, Talos does not reboot for a configuration and leaves that to the container runtime.
func TestReboot_ofAContainerThatDoesNotTakeIt(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m := add(t, simulator, sim.MachineOptions{Platform: machined.Container})
	api := o.fleet(t, nil).Machine(cluster.Machine{Name: m.Name(), Wanted: cluster.Wanted{Address: m.Address().String()}})

	must(t, api.ApplyConfig(t.Context(), o.config(t, machinetype.TypeControlPlane), step.Maintenance, ""))
	observed(t, api, "waited for its bootstrap", waitsForBootstrap)
	m.SetFault(fault.Fault{Method: "ApplyConfiguration", Code: codes.Unimplemented,
		Message: "the REBOOT mode is not supported"})

	if err := api.Reboot(t.Context(), ""); !errors.Is(err, talos.ErrUnsupported) || !wait.IsPermanent(err) {
		t.Errorf("err = %v", err)
	}
}

// Nothing is sent to a machine with another hardware UUID than the one that was meant.
func TestChanges_compareTheUUID(t *testing.T) {
	t.Parallel()

	const another = "11111111-2222-3333-4444-555555555555"

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, own, config := waiting(t, simulator, o, o.fleet(t, nil))

	mistaken := wanted(m)
	mistaken.UUID = another
	known := o.fleet(t, nil).Machine(mistaken)
	ctx := t.Context()

	simulator.ForgetCalls()

	for what, err := range map[string]error{
		"try":     own.TryConfig(ctx, withSysctl(t, config), another, time.Minute),
		"stage":   own.StageConfig(ctx, config, another),
		"reboot":  own.Reboot(ctx, another),
		"upgrade": own.Upgrade(ctx, newer, another, confirmed),
		"leave":   own.LeaveEtcd(ctx, another),
		"pull":    known.PullImage(ctx, newer),
		"fetch":   known.PullComponent(ctx, kubenames.Kubelet, newKubelet),
		"forfeit": known.ForfeitLeadership(ctx),
		"remove":  known.RemoveMember(ctx, "2ac1b0d0b83cb2a4"),
	} {
		if !errors.Is(err, talos.ErrForeign) || !wait.IsPermanent(err) {
			t.Errorf("%s: %v", what, err)
		}
	}

	for _, call := range simulator.Calls() {
		if call.Mutates() {
			t.Errorf("the wrong machine was sent %s", call)
		}
	}
}
