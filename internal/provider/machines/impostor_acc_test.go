package machines_test

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// switchboard is an address of the site from which connections to the Talos API go to one machine or another, as
// when another machine takes an address.
type switchboard struct {
	address netip.Addr
	to      atomic.Pointer[sim.Machine]
}

// newSwitchboard takes the address of a machine that stays off.
func newSwitchboard(t *testing.T, s *sitetest.Site, to *sim.Machine) *switchboard {
	t.Helper()

	spare := extra(t, s, "spare", sim.MachineOptions{PoweredOff: true})
	b := &switchboard{address: spare.Address()}
	b.to.Store(to)

	l, err := net.Listen("tcp", netip.AddrPortFrom(b.address, 50000).String())
	tftest.Must(t, err)
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

// connect passes one connection on until either side ends it. A connection to a replaced machine ends with its next
// message.
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
func extra(t *testing.T, s *sitetest.Site, name string, options sim.MachineOptions) *sim.Machine {
	t.Helper()

	machines, err := s.AddMachines(t.Context(), name, 1, options)
	tftest.Must(t, err)

	if !options.PoweredOff {
		tftest.Must(t, machines[0].AwaitStage(t.Context(), sim.StageMaintenance))
	}

	return machines[0]
}

// nothingChanged checks that no machine got a change, and that all members are present.
func nothingChanged(t *testing.T, s *sitetest.Site) {
	t.Helper()

	s.ExpectNothingSent(t)
	s.ExpectUntouched(t)
}

// behind is the configuration of a control plane whose third machine is reached through a switchboard.
func behind(s *sitetest.Site, b *switchboard, third string) string {
	hcl := sitetest.ProviderHCL + sitetest.SecretsHCL + s.ControlPlaneHCL(`  timeouts = { update = "20s" }
  config_patches = [yamlencode({ machine = { certSANs = ["`+b.address.String()+`"] } })]`)

	return strings.Replace(hcl, `cp-3 = { address = "`+s.ControlPlane[2].Address().String()+`"`,
		`cp-3 = { address = "`+b.address.String()+`"`+third, 1)
}

// A foreign machine takes the address of a control plane and waits there in maintenance mode. No plan or apply sends
// it anything, the member stays, and the record of the machine is kept.
func TestAccImpostor_atTheAddressOfAMember(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 0)
		meant := s.ControlPlane[2]
		b := newSwitchboard(t, s, meant)
		w := sitetest.Applied(t, cli, behind(s, b, ""))
		sitetest.ExpectNoChanges(t, w, "after the create")

		blank := extra(t, s, "blank", sim.MachineOptions{Platform: machined.Container})
		alike := extra(t, s, "alike", sim.MachineOptions{UUID: meant.UUID()})

		w.Write("main.tf", behind(s, b, `, config_patches = [yamlencode({ machine = { nodeLabels = { rack = "b" } } })]`))
		w.MustRun("plan", "-out=before.tfplan")
		s.ForgetCalls()

		b.to.Store(blank)
		late := w.Run("apply", "before.tfplan")
		sitetest.Says(t, late, "waits in maintenance mode, but was a member of the cluster", "Plan again")
		nothingChanged(t, s)

		planned := w.MustRun("plan")
		sitetest.Says(t, planned, "not proven to be the machine that joined",
			"reports no hardware UUID, expected "+meant.UUID(),
			"rejoin = true")

		refused := w.Run("apply", "-auto-approve")
		sitetest.Says(t, refused, "reports no hardware UUID, expected "+meant.UUID())
		nothingChanged(t, s)

		known := sitetest.RememberedBy(t, w, "talosop_control_plane.this")["cp-3"]
		if known.UUID != meant.UUID() || known.MemberID == "" {
			t.Errorf("the record of cp-3 is %+v, want the UUID %s and its member", known, meant.UUID())
		}

		b.to.Store(alike)

		held := w.Run("apply", "-auto-approve")
		sitetest.Says(t, held, "waits in maintenance mode while its node is Ready")

		if late.Exit != 1 || refused.Exit != 1 || held.Exit != 1 {
			t.Errorf("the applies ended with %d, %d and %d, want 1", late.Exit, refused.Exit, held.Exit)
		}

		nothingChanged(t, s)

		b.to.Store(meant)
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after the machine was back")
		s.ExpectMembers(t, 3)
	})
}

// A machine that was really wiped joins again: automatically when its hardware proves its identity, and otherwise
// with one line of the user.
func TestAccImpostor_wipedMachinesAreRepaired(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		blank := extra(t, s, "blank", sim.MachineOptions{Platform: machined.Container})
		proven := s.Workers[0]

		config := func(line string) string {
			hcl := sitetest.ProviderHCL + sitetest.SecretsHCL + s.ControlPlaneHCL("") + s.WorkersOf(append(s.Workers, blank), "")

			return strings.Replace(hcl, `address = "`+blank.Address().String()+`"`, `address = "`+blank.Address().String()+`"`+line, 1)
		}

		w := sitetest.Applied(t, cli, config(""))

		for _, m := range []*sim.Machine{proven, blank} {
			m.Wipe()
			m.PowerOn()
			tftest.Must(t, m.AwaitStage(t.Context(), sim.StageMaintenance))
		}

		s.ForgetCalls()

		sitetest.Says(t, w.MustRun("plan"), "w-1: in maintenance mode without a configuration",
			"not proven to be the machine that joined", "rejoin = true")

		if refused := w.Run("apply", "-auto-approve"); refused.Exit != 1 {
			t.Errorf("the apply ended with %d, want 1", refused.Exit)
		}

		s.ExpectNothingSent(t)

		w.Write("main.tf", config(", rejoin = true"))
		sitetest.Says(t, w.MustRun("apply", "-auto-approve"), "apply configuration to "+blank.Name(),
			"apply configuration to w-1")
		sitetest.Shows(t, w.MustRun("plan"), "rejoin_enabled")

		w.Write("main.tf", config(""))
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after rejoin was taken away")
	})
}
