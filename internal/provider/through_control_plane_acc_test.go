package provider_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/gateway"
)

const through = `access = "through_control_plane"`

// shield allows only the control planes to connect to configured workers. Those that wait are reached by names that
// only the network behind its gateways resolves.
func shield(s *sitetest.Site) *gateway.Network {
	waiting := map[string]string{}

	for _, m := range s.Workers {
		m.AdmitOnly(s.ControlPlane...)
		waiting[m.Name()+".invalid:50000"] = net.JoinHostPort(m.Address().String(), "50000")
	}

	return gateway.NewNetwork(waiting)
}

// behindControlPlanes are workers of a configuration with additional attributes, in which NAME is that of the
// machine.
func behindControlPlanes(config string, workers []*sim.Machine, attributes string) string {
	for _, m := range workers {
		address := fmt.Sprintf("address = %q", m.Address())
		config = strings.Replace(config, address, address+", "+strings.ReplaceAll(attributes, "NAME", m.Name()), 1)
	}

	return config
}

// Workers that accept connections only from control planes use them for their whole lifecycle: the provider dials
// only their maintenance address.
func TestAccThroughControlPlane_isTheOnlyRoute(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 3, 2)
		network := shield(s)
		config := func(workers []*sim.Machine, version string) string {
			all := sitetest.ProviderHCL + sitetest.SecretsHCL + s.ControlPlaneHCL("") + s.WorkersOf(workers, "")

			return strings.ReplaceAll(behindControlPlanes(all, workers,
				through+`, maintenance_address = "NAME.invalid"`), "v1.13.0", version) +
				fmt.Sprintf("provider \"talosop\" {\n  proxy_url = %q\n}\n", network.SOCKS(t))
		}

		w := clitest.NewWorkspace(t, cli)
		w.Write("main.tf", config(s.Workers, "v1.13.0"))
		w.Init()
		sitetest.Says(t, w.MustRun("apply", "-auto-approve"), "reach everything by way of the proxy",
			"reach w-1 and w-2 through control planes")
		sitetest.ExpectNoChanges(t, w, "through control planes")

		// The control planes that proxy calls reboot before the workers do.
		w.Write("main.tf", config(s.Workers, "v1.13.1"))
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after the upgrade")

		for _, m := range s.Workers {
			if m.TalosVersion() != "v1.13.1" {
				t.Errorf("%s runs %s", m.Name(), m.TalosVersion())
			}
		}

		boots := s.Workers[0].Boots()

		w.Write("main.tf", config(s.Workers, "v1.13.1")+fmt.Sprintf(`
resource "talosop_machine_reboot" "one" {
  cluster  = talosop_control_plane.this.cluster
  machines = [%q]
  %s
}
`, s.Workers[0].Address(), through))
		w.MustRun("apply", "-auto-approve")

		if s.Workers[0].Boots() != boots+1 {
			t.Error("the worker was not rebooted")
		}

		w.Write("main.tf", config(s.Workers[:1], "v1.13.1"))
		sitetest.Says(t, w.MustRun("apply", "-auto-approve"), "reach w-2 through control planes")

		if stage := s.Workers[1].Stage(); stage != sim.StageMaintenance {
			t.Errorf("the worker that left is %s", stage)
		}

		w.MustRun("destroy", "-auto-approve")

		dialed := network.Dialed()
		for _, m := range s.Workers {
			if slices.Contains(dialed, net.JoinHostPort(m.Address().String(), "50000")) {
				t.Errorf("%s was dialed around the control planes", m.Name())
			}

			if !slices.Contains(dialed, m.Name()+".invalid:50000") {
				t.Errorf("%s was not configured where it waits", m.Name())
			}
		}
	})
}

// From a network with only a jump host, which reaches the control planes and not the running workers, the workers
// are created, read, imported and destroyed.
func TestAccThroughControlPlane_behindAJumpHost(t *testing.T) {
	t.Parallel()

	namespace := gateway.NewNamespace(t)
	s := sitetest.New(t, 1, 1)
	network := shield(s).At(namespace.Outside)

	w := clitest.NewWorkspace(t, clitest.Any(t))
	w.Write("main.tf", sitetest.ProviderHCL+jumpHostHCL(network.Jump(t))+
		behindControlPlanes(s.WholeCluster(), s.Workers, through+`, maintenance_address = "NAME.invalid"`))
	w.Init()
	w.Inside(namespace.Command()...)

	sitetest.Says(t, w.MustRun("apply", "-auto-approve"), "reach everything by way of the SSH jump host",
		"reach w-1 through control planes")
	sitetest.ExpectNoChanges(t, w, "by a jump host and a control plane")

	bundle, _ := w.Attribute("talosop_secrets.this", "bundle").(string)
	w.Write("secrets.yaml", bundle)
	w.MustRun("state", "rm", "talosop_worker.this")
	w.MustRun("import", "talosop_worker.this", tftest.JSON(t, map[string]any{"secrets": "secrets.yaml",
		"machines": sitetest.Addresses(s.Workers), "control_plane": sitetest.Addresses(s.ControlPlane),
		"access": machineset.AccessThroughControlPlane}))
	w.MustRun("apply", "-auto-approve")
	sitetest.ExpectNoChanges(t, w, "after the import")
	w.MustRun("destroy", "-auto-approve")

	if at := net.JoinHostPort(s.Workers[0].Address().String(), "50000"); slices.Contains(network.Dialed(), at) {
		t.Errorf("the worker was dialed at %s", at)
	}
}

// A control plane that loses power while it proxies the upgrade of a worker ends neither the upgrade nor the apply.
func TestAccThroughControlPlane_survivesItsControlPlane(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 3, 1)
	w := clitest.NewWorkspace(t, clitest.Any(t))
	network := shield(s)
	config := func(version string) string {
		workers := behindControlPlanes(s.WorkersHCL(""), s.Workers, through+`, maintenance_address = "NAME.invalid"`)

		return sitetest.ProviderHCL + sitetest.SecretsHCL + s.ControlPlaneHCL("") +
			strings.Replace(workers, `talos_version = "v1.13.0"`, fmt.Sprintf("talos_version = %q", version), 1) +
			fmt.Sprintf("provider \"talosop\" {\n  proxy_url = %q\n}\n", network.SOCKS(t))
	}

	w.Write("main.tf", config("v1.13.0"))
	w.Init()
	w.MustRun("apply", "-auto-approve")

	var lost atomic.Bool

	s.SetOnCall(func(call fault.Call) error {
		if call.Machine == s.Workers[0].Name() && call.Method == "Upgrade" && !lost.Swap(true) {
			for _, m := range s.ControlPlane[:2] {
				m.PowerOff()
			}

			for _, m := range s.ControlPlane[:2] {
				m.PowerOn()
			}
		}

		return nil
	})

	w.Write("main.tf", config("v1.13.1"))
	w.MustRun("apply", "-auto-approve")
	sitetest.ExpectNoChanges(t, w, "after the upgrade")

	if !lost.Load() || s.Workers[0].TalosVersion() != "v1.13.1" {
		t.Errorf("the worker runs %s", s.Workers[0].TalosVersion())
	}
}

// A worker that is unreachable while it waits configures itself, and joins the cluster through control planes. The
// plan says that it has to, and an earlier apply says what it waits for.
func TestAccThroughControlPlane_configuresItself(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 1)
	shield(s)

	w := clitest.NewWorkspace(t, clitest.Any(t))
	base := sitetest.ProviderHCL + sitetest.SecretsHCL + s.ControlPlaneHCL("") + `
data "talosop_machine_config" "any" {
  cluster       = talosop_control_plane.this.cluster
  talos_version = "v1.13.0"
  role          = "worker"
  hostname      = "w-1"
  install       = { disk = "/dev/sda" }
}

output "config" {
  value     = data.talosop_machine_config.any.config
  sensitive = true
}
`
	w.Write("main.tf", base)
	w.Init()
	w.MustRun("apply", "-auto-approve")

	w.Write("main.tf", base+behindControlPlanes(s.WorkersHCL(`timeouts = { create = "5s" }`), s.Workers, through))

	result := w.Run("apply", "-auto-approve")
	sitetest.Shows(t, result, "maintenance_unreachable")
	sitetest.Says(t, result,
		"w-1: no response from "+s.Workers[0].Address().String(),
		"through control plane "+s.ControlPlane[0].Address().String(), "control planes cannot proxy to machines in "+
			"maintenance mode")

	if s.Workers[0].Stage() != sim.StageMaintenance {
		t.Error("the worker was configured")
	}

	config, _ := w.Attribute("data.talosop_machine_config.any", "config").(string)
	sitetest.Boot(t, s, sitetest.BundleIn(t, w), config)
	w.Write("main.tf", base+behindControlPlanes(s.WorkersHCL(""), s.Workers, through))
	w.MustRun("apply", "-auto-approve")
	sitetest.ExpectNoChanges(t, w, "after the worker joined")
}

func TestAccThroughControlPlane_mistakes(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 1)
	w := clitest.NewWorkspace(t, clitest.Any(t))
	all := sitetest.ProviderHCL + s.WholeCluster()

	w.Write("main.tf", behindControlPlanes(all, s.ControlPlane, through))
	w.Init()
	sitetest.Shows(t, sitetest.Fails(t, w, "plan"), "through_on_control_plane")

	w.Write("main.tf", behindControlPlanes(all, s.Workers, through+`, talos_endpoint = "nat.invalid:4001"`))
	sitetest.Shows(t, sitetest.Fails(t, w, "plan"), "through_with_endpoint")

	w.Write("main.tf", behindControlPlanes(all, s.Workers, `access = "sideways"`))
	sitetest.Says(t, sitetest.Fails(t, w, "validate"), "value must be one of")

	w.Write("main.tf", sitetest.ProviderHCL+sitetest.SecretsHCL+fmt.Sprintf(`
resource "talosop_machine" "this" {
  cluster = {
    mode     = "metal"
    name     = "test"
    endpoint = "https://10.0.0.1:6443"
    secrets  = talosop_secrets.this.bundle
    kubernetes_version = "v1.36.2"
  }
  name          = "w-1"
  role          = "worker"
  address       = %q
  talos_version = "v1.13.0"
  install       = { disk = "/dev/sda" }
  %s
}
`, s.Workers[0].Address(), through))
	sitetest.Says(t, sitetest.Fails(t, w, "plan"), "no control plane is known")
}
