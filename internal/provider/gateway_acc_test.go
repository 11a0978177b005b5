package provider_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/gateway"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// From a network with only a jump host or a proxy, a cluster is created, read, changed and destroyed, including its
// Kubernetes API.
func TestAccGateway_isTheOnlyRoute(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		namespace := gateway.NewNamespace(t)
		network := gateway.NewNetwork(nil).At(namespace.Outside)
		jump := network.Jump(t)

		s := sitetest.New(t, 1, 1)
		config := sitetest.ProviderHCL + s.WholeCluster()
		byJump := jumpHostHCL(jump)

		machine := net.JoinHostPort(s.ControlPlane[0].Address().String(), "50000")
		if reached(t, namespace, machine) || !reached(t, namespace, jump.Address) {
			t.Fatal("the namespace reaches machines, or not the jump host")
		}

		w := clitest.NewWorkspace(t, cli)
		w.Write("main.tf", config)
		w.Write("provider.tf", byJump)
		w.Init()
		w.Inside(namespace.Command()...)

		output := w.MustRun("apply", "-auto-approve").Output()
		sitetest.ExpectNoChanges(t, w, "by the jump host")

		for _, proxy := range []string{network.SOCKS(t), network.HTTP(t)} {
			w.Write("provider.tf", fmt.Sprintf("provider \"talosop\" {\n  proxy_url = %q\n}\n", proxy))
			sitetest.ExpectNoChanges(t, w, "by the proxy "+proxy)
		}

		for _, server := range []string{machine, strings.TrimPrefix(s.URL, "https://")} {
			if !slices.Contains(network.Dialed(), server) {
				t.Errorf("nothing went to %s by a gateway", server)
			}
		}

		w.Write("provider.tf", byJump)
		output += w.MustRun("destroy", "-auto-approve").Output()

		if state := w.Read("terraform.tfstate*"); strings.Contains(output+state, "PRIVATE KEY") {
			t.Error("the private key is in the output or the state")
		}
	})
}

// jumpHostHCL is a provider that reaches everything through a jump host.
func jumpHostHCL(jump *gateway.JumpHost) string {
	return fmt.Sprintf(`
provider "talosop" {
  jump_host = {
    address     = %q
    user        = %q
    private_key = <<-KEY
%s
    KEY
    host_key    = %q
  }
}
`, jump.Address, gateway.User, jump.PrivateKey, jump.HostKey)
}

// A gateway that leads nowhere is named when a machine does not answer, and an unknown one is not bypassed.
func TestAccGateway_isNamed(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	w := clitest.NewWorkspace(t, clitest.Any(t))
	w.Write("main.tf", sitetest.ProviderHCL+fmt.Sprintf(`
resource "terraform_data" "proxy" {
  input = "socks5://127.0.0.1:1"
}

provider "talosop" {
  proxy_url = var.known ? "socks5://127.0.0.1:1" : terraform_data.proxy.output
}

variable "known" {
  default = true
}

data "talosop_machine_info" "this" {
  address = %q
}
`, s.ControlPlane[0].Address()))
	w.Init()

	sitetest.Says(t, sitetest.Fails(t, w, "plan"), "through the proxy socks5://127.0.0.1:1")
	w.Setenv("TF_VAR_known", "false")
	sitetest.Says(t, sitetest.Fails(t, w, "plan"), "is unknown before the apply, and all connections")
}

func TestAccGateway_mistakes(t *testing.T) {
	t.Parallel()

	w := clitest.NewWorkspace(t, clitest.Any(t))
	configure := func(provider string) {
		w.Write("main.tf", sitetest.ProviderHCL+fmt.Sprintf(`
variable "proxy" {
  default = "ftp://user:secret@10.0.0.5:21"
}

provider "talosop" {
  %s
}

data "talosop_machine_info" "this" {
  address = "10.0.0.1"
}
`, provider))
	}

	configure(`jump_host = { address = "", user = "core", private_key = "mine", host_key = "ssh-what" }`)
	w.Init()
	sitetest.Says(t, sitetest.Fails(t, w, "validate"), "Found an empty string")

	configure(`jump_host = { address = "10.0.0.5", user = "core", private_key = "mine", host_key = "ssh-what" }`)
	sitetest.Says(t, sitetest.Fails(t, w, "validate"), "not a private key in PEM format", "not a public key")

	configure(`proxy_url = var.proxy`)

	result := sitetest.Fails(t, w, "plan")
	sitetest.Says(t, result, `unsupported scheme "ftp"`)

	if strings.Contains(result.Output(), "secret") {
		t.Errorf("the password is in the output:\n%s", result.Output())
	}
}

// Machines that are reached elsewhere than at their addresses are only reached there, even by resources that know
// the cluster by its handle. Their certificates are still checked for their addresses. Another endpoint changes no
// machine.
func TestAccTalosEndpoint_isDialed(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		own := func(i int) string {
			m := append(slices.Clone(s.ControlPlane), s.Workers...)[i]

			return net.JoinHostPort(m.Address().String(), "50000")
		}
		network := gateway.NewNetwork(map[string]string{"nat.invalid:4001": own(0), "nat.invalid:4002": own(1),
			"other.invalid:50000": own(1)})
		config := func(worker string) string {
			all := sitetest.ProviderHCL + s.WholeCluster()
			for m, endpoint := range map[*sim.Machine]string{s.ControlPlane[0]: "nat.invalid:4001", s.Workers[0]: worker} {
				all = strings.Replace(all, fmt.Sprintf("address = %q", m.Address()),
					fmt.Sprintf("address = %q, talos_endpoint = %q", m.Address(), endpoint), 1)
			}

			return all + fmt.Sprintf("provider \"talosop\" {\n  proxy_url = %q\n}\n", network.SOCKS(t))
		}

		w := clitest.NewWorkspace(t, cli)
		w.Write("main.tf", config("nat.invalid:4002"))
		w.Init()
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "by endpoints")

		boot := s.Workers[0].BootID()

		w.Write("main.tf", config("other.invalid"))
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "by another endpoint")

		if s.Workers[0].BootID() != boot {
			t.Error("another endpoint rebooted the machine")
		}

		w.MustRun("destroy", "-auto-approve")

		dialed := network.Dialed()
		for _, at := range []string{"nat.invalid:4001", "nat.invalid:4002", "other.invalid:50000"} {
			if !slices.Contains(dialed, at) {
				t.Errorf("nothing was dialed at %s: %v", at, dialed)
			}
		}

		for i := range 2 {
			if slices.Contains(dialed, own(i)) {
				t.Errorf("%s was dialed around the endpoint", own(i))
			}
		}

		w.Write("main.tf", config("nat.invalid:4001"))
		sitetest.Shows(t, sitetest.Fails(t, w, "plan"), "duplicate_machine")
	})
}

// A machine that gets its address with its configuration is configured where it waits, and then reached at its
// address.
func TestAccMaintenanceAddress_isWhereAMachineWaits(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	m := s.ControlPlane[0]
	address := m.Address()

	if err := m.Move(netip.Addr{}); err != nil {
		t.Fatal(err)
	}

	until(t, "it waits elsewhere", func() bool { return m.Stage() == sim.StageMaintenance })

	waits, boot := m.Address(), m.BootID()

	w := clitest.NewWorkspace(t, clitest.Any(t))
	w.Write("main.tf", sitetest.ProviderHCL+sitetest.SecretsHCL+strings.Replace(strings.Replace(s.ControlPlaneHCL(""),
		fmt.Sprintf("address = %q", waits), fmt.Sprintf("address = %q, maintenance_address = %q", address, waits), 1),
		s.URL, "https://"+net.JoinHostPort(address.String(), "6443"), 1))
	w.Init()

	apply := w.Start("apply", "-auto-approve")

	until(t, "it is installed", func() bool { return m.BootID() != boot && m.Stage() == sim.StageBooting })

	if err := m.Move(address); err != nil {
		t.Fatal(err)
	}

	if result := apply.Wait(); result.Exit != 0 {
		t.Fatalf("the create ended with %d:\n%s", result.Exit, result.Output())
	}

	sitetest.ExpectNoChanges(t, w, "at its address")
	w.MustRun("destroy", "-auto-approve")
}

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()

	if err := wait.Until(t.Context(), 10*time.Millisecond, func(context.Context) error {
		if !is() {
			return errors.New("not yet: " + what)
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// reached reports whether a program in a namespace can connect to an address.
func reached(t *testing.T, n gateway.Namespace, address string) bool {
	t.Helper()

	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()

	command := append(n.Command(), "bash", "-c", fmt.Sprintf("</dev/tcp/%s/%s", host, port))

	return exec.CommandContext(ctx, command[0], command[1:]...).Run() == nil
}
