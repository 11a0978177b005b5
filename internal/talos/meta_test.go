package talos_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"google.golang.org/grpc/codes"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/talos"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
	"github.com/talosop/terraform-provider-talosop/internal/wipe"
)

func TestWriteMeta_onlyWhatDiffers(t *testing.T) {
	t.Parallel()

	for _, version := range []string{"v1.13.0", "v1.14.1"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			writesMeta(t, sim.Options{TalosVersion: version})
		})
	}
}

func writesMeta(t *testing.T, options sim.Options) {
	t.Helper()

	simulator := site(t, options)
	o := newOwner(t, simulator)
	f := o.fleet(t, nil)
	m, api := member(t, simulator, o, f, machinetype.TypeControlPlane)
	observed(t, api, "waited for its bootstrap", waitsForBootstrap)

	// META is only read where values are wanted.
	simulator.ForgetCalls()

	if got := api.Observe(t.Context()); got.Meta != nil || len(callsOf(simulator, "MetaKeys")) != 0 {
		t.Errorf("META %v was read without being wanted", got.Meta)
	}

	m.SetMeta(0x0c, "rack-1")
	m.SetMeta(0x06, "A")

	want := map[uint8]string{0x0c: "rack-1", 0x0d: "", 0x0e: "blue"}
	must(t, api.WriteMeta(t.Context(), want))

	// Only what differs is written; a second time nothing is.
	must(t, api.WriteMeta(t.Context(), want))

	if got := callsOf(simulator, "0x"); len(got) != 2 || !strings.Contains(got[0], "0x0d") ||
		!strings.Contains(got[1], "0x0e") {
		t.Errorf("written %v", got)
	}

	wanting := wanted(m)
	wanting.Meta = want

	held := map[uint8]string{0x06: "A", 0x0c: "rack-1", 0x0d: "", 0x0e: "blue"}
	if got := f.Machine(wanting).Observe(t.Context()); !maps.Equal(got.Meta, held) || !maps.Equal(m.Meta(), held) {
		t.Errorf("META %v, on the machine %v", got.Meta, m.Meta())
	}
}

// callsOf lists the calls that asked for something.
func callsOf(simulator *sim.Simulator, detail string) []string {
	var found []string

	for _, c := range simulator.Calls() {
		if strings.HasPrefix(c.Detail, detail) {
			found = append(found, c.String())
		}
	}

	return found
}

func TestWriteMeta_errors(t *testing.T) {
	t.Parallel()

	const private = "sesame"

	tests := map[string]struct {
		platform  machined.Platform
		fault     fault.Fault
		uuid      string
		value     string
		class     error
		permanent bool
		text      string
	}{
		"a container": {platform: machined.Container, class: talos.ErrUnsupported, permanent: true,
			text: "no META, as in containers: method is not supported in container mode"},
		"no space": {value: strings.Repeat("x", 256<<10), class: talos.ErrRejected, permanent: true,
			text: "key 0x0c: rejected: meta write failed"},
		"a client without role": {fault: fault.Fault{Code: codes.PermissionDenied, Message: "not authorized"},
			class: talos.ErrNotAuthorized, permanent: true},
		"a restarting machine": {fault: fault.Fault{Code: codes.Unavailable, Message: "starting"}, class: talos.ErrUnreachable,
			text: "starting"},
		"a lost answer": {fault: fault.Fault{DropResponse: true}, class: talos.ErrUnreachable},
		"another hardware UUID": {uuid: "11111111-2222-3333-4444-555555555555", class: talos.ErrForeign, permanent: true,
			text: "expected 11111111"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			simulator := site(t, sim.Options{})
			o := newOwner(t, simulator)
			f := o.fleet(t, shortly)
			m := add(t, simulator, sim.MachineOptions{Platform: test.platform})
			api := f.Machine(cluster.Machine{Name: m.Name(), Wanted: cluster.Wanted{Address: m.Address().String()}})

			must(t, o.fleet(t, nil).Machine(cluster.Machine{Name: m.Name(), Wanted: cluster.Wanted{Address: m.Address().String()}}).
				ApplyConfig(t.Context(), o.config(t, machinetype.TypeControlPlane), step.Maintenance, ""))
			observed(t, api, "waited for its bootstrap", waitsForBootstrap)

			if test.fault.Code != codes.OK || test.fault.DropResponse {
				test.fault.Method = "MetaWrite"
				m.SetFault(test.fault)
			}

			value := private + test.value
			api = f.Machine(cluster.Machine{Name: m.Name(), Wanted: cluster.Wanted{Address: m.Address().String(), UUID: test.uuid}})

			err := api.WriteMeta(t.Context(), map[uint8]string{0x0c: value})
			if !errors.Is(err, test.class) || wait.IsPermanent(err) != test.permanent ||
				!strings.Contains(err.Error(), test.text) {
				t.Errorf("err = %v (permanent %t), want %v (permanent %t)", err, wait.IsPermanent(err), test.class, test.permanent)
			}

			if err != nil && strings.Contains(err.Error(), private) {
				t.Errorf("the error shows the value: %v", err)
			}

			if sent := len(simulator.CallsTo("MetaWrite")); test.uuid != "" && sent != 0 {
				t.Errorf("%d values were sent to another machine", sent)
			}

			if test.permanent {
				return
			}

			// In every case, a second run has the same result.
			must(t, api.WriteMeta(t.Context(), map[uint8]string{0x0c: value}))

			if got := m.Meta()[0x0c]; got != value {
				t.Errorf("META holds %q", got)
			}
		})
	}
}

func TestWriteMeta_inMaintenance(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	m := add(t, simulator, sim.MachineOptions{})

	err := newOwner(t, simulator).fleet(t, nil).Machine(wanted(m)).WriteMeta(t.Context(), map[uint8]string{0x0c: "x"})
	if !errors.Is(err, talos.ErrMaintenance) || len(simulator.CallsTo("MetaWrite")) != 0 {
		t.Errorf("err = %v with %d calls", err, len(simulator.CallsTo("MetaWrite")))
	}
}

// TestWriteMeta_ofNetwork: a machine whose network was changed has to stay reachable.
func TestWriteMeta_ofNetwork(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m, api := member(t, simulator, o, o.fleet(t, nil), machinetype.TypeControlPlane)
	observed(t, api, "waited for its bootstrap", waitsForBootstrap)

	must(t, api.WriteMeta(t.Context(), map[uint8]string{metakey.Network: "addresses: []"}))

	simulator.SetOnCall(func(c fault.Call) error {
		if c.Method == "MetaWrite" {
			m.SetFault(fault.Fault{Cut: true, Count: -1, Method: "Get"})
		}

		return nil
	})

	err := o.fleet(t, shortly).Machine(wanted(m)).WriteMeta(t.Context(),
		map[uint8]string{metakey.Network: "addresses: [10.0.0.1/24]"})
	if err == nil || wait.IsPermanent(err) || !strings.Contains(err.Error(), "the network configuration changed") {
		t.Errorf("err = %v, want that the machine went away", err)
	}

	if got := m.Meta()[metakey.Network]; got != "addresses: [10.0.0.1/24]" {
		t.Errorf("META holds %q", got)
	}
}

// TestWriteMeta_ofUUIDOverride: a machine that was given another UUID is still the one
// that was meant.
func TestWriteMeta_ofUUIDOverride(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	f := o.fleet(t, nil)
	m, api := member(t, simulator, o, f, machinetype.TypeControlPlane)
	observed(t, api, "waited for its bootstrap", waitsForBootstrap)

	wanting := wanted(m)
	wanting.Meta = map[uint8]string{metakey.UUIDOverride: "11111111-2222-3333-4444-555555555555"}
	api = f.Machine(wanting)
	must(t, api.WriteMeta(t.Context(), wanting.Meta))

	if got := api.Observe(t.Context()); got.UUID != wanting.Meta[metakey.UUIDOverride] {
		t.Errorf("uuid %s", got.UUID)
	}

	must(t, api.WriteMeta(t.Context(), map[uint8]string{0x0c: "x"}))
}

func TestTrustNodeNames_savesCalls(t *testing.T) {
	t.Parallel()

	simulator := site(t, sim.Options{})
	o := newOwner(t, simulator)
	m := add(t, simulator, sim.MachineOptions{Hostname: "cp-one"})
	api := o.fleet(t, nil).Machine(wanted(m))
	must(t, api.ApplyConfig(t.Context(), o.config(t, machinetype.TypeControlPlane), step.Maintenance, m.UUID()))
	observed(t, api, "waited for its bootstrap", waitsForBootstrap)
	must(t, api.Bootstrap(t.Context()))
	observed(t, api, "became ready", settled)

	const recorded = "11111111-2222-3333-4444-555555555555" // another one, to tell where the answer is from

	tests := map[string]struct {
		trust      bool
		uuid, node string
		want       string
		calls      int
	}{
		"the recorded node":        {trust: true, uuid: recorded, node: "cp-one", want: recorded, calls: 4},
		"another node":             {trust: true, uuid: recorded, node: "cp-two", want: m.UUID(), calls: 5},
		"no UUID recorded":         {trust: true, node: "cp-one", want: m.UUID(), calls: 5},
		"nothing recorded":         {trust: true, want: m.UUID(), calls: 5},
		"a fleet that takes steps": {uuid: recorded, node: "cp-one", want: m.UUID(), calls: 7},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := o.fleet(t, func(o *talos.Options) { o.TrustNodeNames = test.trust })
			api := f.Machine(cluster.Machine{Name: m.Name(),
				Wanted:     cluster.Wanted{Address: m.Address().String(), UUID: test.uuid},
				Remembered: cluster.Remembered{NodeName: test.node}})

			simulator.ForgetCalls()

			if got := api.Observe(t.Context()); got.UUID != test.want || !settled(got) {
				t.Errorf("state %+v, want the UUID %s", got, test.want)
			}

			if calls := simulator.Calls(); len(calls) != test.calls {
				t.Errorf("%d calls, want %d: %v", len(calls), test.calls, calls)
			}

			// No change is made on the word of a certificate.
			if test.uuid != "" {
				if err := api.Reset(t.Context(), false, wipe.Reset{}); !errors.Is(err, talos.ErrForeign) || len(simulator.CallsTo("Reset")) != 0 {
					t.Errorf("reset: %v", err)
				}
			}
		})
	}
}
