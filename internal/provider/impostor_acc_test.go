package provider

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// switchboard is an address of the site from which connections to the Talos API go to one machine or another, as they
// do where somebody else takes a machine's address.
type switchboard struct {
	address netip.Addr
	to      atomic.Pointer[sim.Machine]
}

// newSwitchboard takes the address of a machine that stays off.
func (s *site) newSwitchboard(t *testing.T, to *sim.Machine) *switchboard {
	t.Helper()

	spare := s.extra(t, "spare", sim.MachineOptions{PoweredOff: true})
	b := &switchboard{address: spare.Address()}
	b.to.Store(to)

	l, err := net.Listen("tcp", netip.AddrPortFrom(b.address, 50000).String())
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })

	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}

			go b.connect(client)
		}
	}()

	return b
}

// connect passes one connection on until either side ends it. One to a machine that another one has taken the place of
// ends with its next word.
func (b *switchboard) connect(client net.Conn) {
	defer client.Close()

	to := b.to.Load()

	server, err := net.Dial("tcp", netip.AddrPortFrom(to.Address(), 50000).String())
	if err != nil {
		return
	}

	defer server.Close()

	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()

	buffer := make([]byte, 1<<16)

	for b.to.Load() == to {
		n, err := client.Read(buffer)
		if err != nil || b.to.Load() != to {
			return
		}

		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// extra is a machine that no configuration lists.
func (s *site) extra(t *testing.T, name string, options sim.MachineOptions) *sim.Machine {
	t.Helper()

	machines, err := s.AddMachines(t.Context(), name, 1, options)
	must(t, err)

	if !options.PoweredOff {
		must(t, machines[0].AwaitStage(t.Context(), sim.StageMaintenance))
	}

	return machines[0]
}

// nothingChanged checks that nobody was asked to change anything, and that all members are there.
func (s *site) nothingChanged(t *testing.T) {
	t.Helper()

	s.nothingWasSent(t)
	s.expectUntouched(t)
}

// behind is the configuration of a control plane whose third machine is reached through a switchboard.
func (s *site) behind(b *switchboard, third string) string {
	hcl := secretsProvider + secretsHCL + s.controlPlaneHCL(`  timeouts = { update = "20s" }
  config_patches = [yamlencode({ machine = { certSANs = ["`+b.address.String()+`"] } })]`)

	return strings.Replace(hcl, `cp-3 = { address = "`+s.controlPlane[2].Address().String()+`"`,
		`cp-3 = { address = "`+b.address.String()+`"`+third, 1)
}

// Somebody takes the address of a control plane and waits there in maintenance mode: whatever is planned and applied,
// nothing is sent to him, the member stays, and nothing that is known of the machine is forgotten.
func TestAccImpostor_atTheAddressOfAMember(t *testing.T) {
	t.Parallel()

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 3, 0)
		meant := s.controlPlane[2]
		b := s.newSwitchboard(t, meant)
		w := applied(t, cli, s.behind(b, ""))
		expectNoChanges(t, w, "after the create")

		blank := s.extra(t, "blank", sim.MachineOptions{Platform: machined.Container})
		alike := s.extra(t, "alike", sim.MachineOptions{UUID: meant.UUID()})

		w.Write("main.tf", s.behind(b, `, config_patches = [yamlencode({ machine = { nodeLabels = { rack = "b" } } })]`))
		w.MustRun("plan", "-out=before.tfplan")
		s.ForgetCalls()

		b.to.Store(blank)
		late := w.Run("apply", "before.tfplan")
		says(t, late, "waits in maintenance mode, and was a member of the cluster until now", "Plan again")
		s.nothingChanged(t)

		planned := w.MustRun("plan")
		says(t, planned, "nothing proves that it is the machine that joined", "shows no hardware UUID, expected is "+meant.UUID(),
			"rejoin = true")

		refused := w.Run("apply", "-auto-approve")
		says(t, refused, "shows no hardware UUID, expected is "+meant.UUID())
		s.nothingChanged(t)

		known := rememberedBy(t, w, "talosop_control_plane.this")["cp-3"]
		if known.UUID != meant.UUID() || known.MemberID == "" {
			t.Errorf("the record of cp-3 is %+v, want the UUID %s and its member", known, meant.UUID())
		}

		b.to.Store(alike)

		held := w.Run("apply", "-auto-approve")
		says(t, held, "waits in maintenance mode while its node is Ready")

		if late.Exit != 1 || refused.Exit != 1 || held.Exit != 1 {
			t.Errorf("the applies ended with %d, %d and %d, want 1", late.Exit, refused.Exit, held.Exit)
		}

		s.nothingChanged(t)

		b.to.Store(meant)
		w.MustRun("apply", "-auto-approve")
		expectNoChanges(t, w, "after the machine was back")
		s.expectMembers(t, 3)
	})
}

// A machine that was really wiped joins again: by itself where its hardware proves that it is the one, and with one line
// of the user where nothing does.
func TestAccImpostor_wipedMachinesAreRepaired(t *testing.T) {
	t.Parallel()

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 1, 1)
		blank := s.extra(t, "blank", sim.MachineOptions{Platform: machined.Container})
		proven := s.workers[0]

		config := func(line string) string {
			hcl := secretsProvider + secretsHCL + s.controlPlaneHCL("") + s.workersOf(append(s.workers, blank), "")

			return strings.Replace(hcl, `address = "`+blank.Address().String()+`"`, `address = "`+blank.Address().String()+`"`+line, 1)
		}

		w := applied(t, cli, config(""))

		for _, m := range []*sim.Machine{proven, blank} {
			m.Wipe()
			m.PowerOn()
			must(t, m.AwaitStage(t.Context(), sim.StageMaintenance))
		}

		s.ForgetCalls()

		says(t, w.MustRun("plan"), "w-1: it waits in maintenance mode, without a configuration",
			"nothing proves that it is the machine that joined", "rejoin = true")

		if refused := w.Run("apply", "-auto-approve"); refused.Exit != 1 {
			t.Errorf("the apply ended with %d, want 1", refused.Exit)
		}

		s.nothingWasSent(t)

		w.Write("main.tf", config(", rejoin = true"))
		says(t, w.MustRun("apply", "-auto-approve"), "apply configuration to "+blank.Name(), "apply configuration to w-1")
		says(t, w.MustRun("plan"), "Machines may still join again without a proof")

		w.Write("main.tf", config(""))
		w.MustRun("apply", "-auto-approve")
		expectNoChanges(t, w, "after rejoin was taken away")
	})
}
