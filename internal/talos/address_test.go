package talos_test

import (
	"errors"
	"strings"
	"testing"

	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// A machine that is not at its new address yet is found at the former one, and calls
// that change it go there.
func TestObserve_atAFormerAddress(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	off := add(t, simulator, sim.MachineOptions{PoweredOff: true})
	m, _, config := waiting(t, simulator, o, o.fleet(t, nil))

	moving := wanted(m)
	moving.Address, moving.PreviousAddress = off.Address().String(), moving.Address

	api := o.fleet(t, nil).Machine(moving)

	seen := observed(t, api, "was found", waitsForBootstrap)
	if seen.UUID != m.UUID() || seen.BootID != m.BootID() || seen.ConfigDigest == "" ||
		seen.FoundAt != m.Address().String() {
		t.Errorf("state %+v", seen)
	}

	must(t, api.ApplyConfig(t.Context(), withSysctl(t, config), step.Member, m.UUID()))
	runsWith(t, api, withSysctl(t, config))
	must(t, api.Reboot(t.Context(), m.UUID()))

	observed(t, api, "came back", func(s step.MachineState) bool {
		return waitsForBootstrap(s) &&
			s.BootID != seen.BootID
	})

	// Once nothing answers any more, the error names both addresses.
	m.PowerOff()

	if got := api.Observe(t.Context()); got.Access != step.Unreachable ||
		!strings.Contains(got.Cause, m.Address().String()) {
		t.Errorf("gone from both: %+v", got)
	}
}

// Nothing but the known machine counts at a former address, and nothing is sent there.
func TestObserve_atAFormerAddressOfAnother(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o, theirs := newOwner(t, simulator), ownerOf(t, simulator, theirSecrets)
	off := add(t, simulator, sim.MachineOptions{PoweredOff: true})
	fresh := add(t, simulator, sim.MachineOptions{})
	ours, _, config := waiting(t, simulator, o, o.fleet(t, nil))
	foreign, _, _ := waiting(t, simulator, theirs, theirs.fleet(t, nil))

	const known = "11111111-2222-3333-4444-555555555555"

	tests := map[string]struct {
		machine cluster.Machine
		want    step.Access
		uuid    string
	}{
		"no UUID is known":               {machine: at(off, ours, ""), want: step.Unreachable},
		"another machine of the cluster": {machine: at(off, ours, known), want: step.Unreachable},
		"a machine without a cluster":    {machine: at(off, fresh, known), want: step.Unreachable},
		"a machine of another cluster":   {machine: at(off, foreign, known), want: step.Unreachable},
		"another one at the new address": {machine: at(fresh, ours, ours.UUID()), want: step.Maintenance,
			uuid: fresh.UUID()},
		"a foreign one at the new": {machine: at(foreign, ours, ours.UUID()), want: step.Foreign},
		"a member at the new":      {machine: at(ours, fresh, known), want: step.Member, uuid: ours.UUID()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			simulator.ForgetCalls()

			api := o.fleet(t, nil).Machine(test.machine)
			if got := api.Observe(t.Context()); got.Access != test.want || got.UUID != test.uuid {
				t.Errorf("state %+v, want %s with the UUID %q", got, test.want, test.uuid)
			}

			if err := api.ApplyConfig(t.Context(), config, step.Member, known); err == nil {
				t.Error("a configuration was sent")
			}

			for _, call := range simulator.Calls() {
				if call.Mutates() || call.Machine == foreign.Name() {
					t.Errorf("another machine was sent %s", call)
				}
			}
		})
	}
}

// at is a machine that is wanted at one place and was at another one before.
func at(now, before *sim.Machine, uuid string) cluster.Machine {
	return cluster.Machine{Name: "moving", Wanted: cluster.Wanted{Address: now.Address().String(), UUID: uuid},
		Remembered: cluster.Remembered{PreviousAddress: before.Address().String()}}
}

// A machine that never was at another address than its own is looked for once.
func TestObserve_atAFormerAddressThatIsTheSame(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, _ := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeControlPlane)
	m.PowerOff()

	same := wanted(m)
	same.PreviousAddress = same.Address

	err := o.fleet(t, nil).Machine(same).Bootstrap(t.Context())
	if !errors.Is(err, talos.ErrUnreachable) || strings.Contains(err.Error(), "before") {
		t.Errorf("err = %v", err)
	}
}
