package talos_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
)

// A machine with an endpoint is dialed there alone, and has to prove that it is the one of its address.
func TestMachine_atAnEndpoint(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, other := running(t, simulator, o), running(t, simulator, o)

	const endpoint = "nat.invalid:4001"

	for name, test := range map[string]struct {
		behind *sim.Machine
		want   step.Access
	}{
		"the machine":    {m, step.Member},
		"another member": {other, step.Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			var (
				mu     sync.Mutex
				dialed []string
			)

			api := o.fleet(t, func(options *talos.Options) {
				options.Endpoints = map[string]string{m.Address().String(): endpoint}
				options.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					mu.Lock()
					defer mu.Unlock()

					dialed = append(dialed, address)

					return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(test.behind.Address().String(), "50000"))
				}
			}).Machine(wanted(m))

			seen := api.Observe(t.Context())
			if seen.Access != test.want || test.want == step.Unreachable &&
				!strings.Contains(seen.Cause, "certificate is not valid for "+m.Address().String()) {
				t.Errorf("state %+v", seen)
			}

			mu.Lock()
			defer mu.Unlock()

			if len(dialed) == 0 || slices.ContainsFunc(dialed, func(at string) bool { return at != endpoint }) {
				t.Errorf("dialed %v", dialed)
			}
		})
	}
}

// A machine that waits for its configuration at another address than it will have is found there as long as it waits,
// and only then; hardware that is known is not taken for another.
func TestMachine_waitsAtAnotherAddress(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	off := add(t, simulator, sim.MachineOptions{PoweredOff: true})
	waits := add(t, simulator, sim.MachineOptions{})
	configured := running(t, simulator, o)

	const known = "11111111-2222-3333-4444-555555555555"

	for name, test := range map[string]struct {
		at    *sim.Machine
		uuid  string
		want  step.Access
		cause string
	}{
		"a machine that waits":         {waits, "", step.Maintenance, ""},
		"the machine that waits":       {waits, waits.UUID(), step.Maintenance, ""},
		"another one that waits":       {waits, known, step.Unreachable, "expected " + known},
		"a machine that is configured": {configured, "", step.Unreachable, "the machine at this address is configured"},
	} {
		t.Run(name, func(t *testing.T) {
			api := o.fleet(t, nil).Machine(cluster.Machine{Name: "cp-1", Wanted: cluster.Wanted{
				Address: off.Address().String(), WaitsAt: test.at.Address().String(), UUID: test.uuid,
			}})

			seen := api.Observe(t.Context())
			if seen.Access != test.want || !strings.Contains(seen.Cause, test.cause) || seen.FoundAt != "" {
				t.Errorf("state %+v", seen)
			}
		})
	}
}

// running is a control plane that answers as a member.
func running(t *testing.T, simulator *sim.Simulator, o owner) *sim.Machine {
	t.Helper()

	m, api := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeControlPlane)
	observed(t, api, "runs", waitsForBootstrap)

	return m
}
