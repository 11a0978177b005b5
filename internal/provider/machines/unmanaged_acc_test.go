package machines_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// A machine that joins with the configuration of the data source is shown by the control plane and in the cluster's
// health. It changes no plan, even when it leaves, and a destroy names it and leaves it unchanged.
func TestAccUnmanaged_isSeenAndStays(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 2)
		w := sitetest.Applied(t, cli, sitetest.ProviderHCL+sitetest.SecretsHCL+s.ControlPlaneHCL("")+s.WorkersOf(s.Workers[:1], "")+`
data "talosop_machine_config" "any" {
  cluster        = talosop_control_plane.this.cluster
  talos_version  = "v1.13.0"
  install        = { disk = "/dev/sda" }
  config_patches = [yamlencode({ machine = { nodeLabels = { "example.com/group" = "spot" } } })]
}

data "talosop_cluster_health" "this" {
  cluster    = talosop_control_plane.this.cluster
  depends_on = [talosop_worker.this]
}
`)
		config, _ := w.Attribute("data.talosop_machine_config.any", "config").(string)
		sitetest.Boot(t, s, sitetest.BundleIn(t, w), config)

		name := s.Workers[1].Hostname()

		sitetest.ExpectNoChanges(t, w, "after the other machine joined")
		w.MustRun("apply", "-auto-approve")

		for address, attribute := range map[string]string{
			"talosop_control_plane.this": "observed_others", "data.talosop_cluster_health.this": "unmanaged",
		} {
			others, _ := w.Attribute(address, attribute).(map[string]any)
			node, _ := others[name].(map[string]any)
			labels, _ := node["labels"].(map[string]any)

			if len(others) != 1 || node["talos_version"] != "v1.13.0" || node["role"] != "worker" ||
				labels["example.com/group"] != "spot" {
				t.Errorf("%s of %s is %v", attribute, address, others)
			}
		}

		planned := w.MustRun("plan", "-destroy")
		sitetest.Shows(t, planned, "unmanaged_nodes_stay")
		sitetest.Says(t, planned, name)

		w.MustRun("destroy", "-auto-approve")

		if m := s.Workers[1]; string(m.Config()) != config || m.Stage() == sim.StageMaintenance {
			t.Error("the machine that others made was touched")
		}
	})
}

// A label selector selects the unmanaged machines that are upgraded with the cluster; their plan is like that of any
// other machine.
func TestAccUnmanaged_isUpgradedOnRequest(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		main := func(extra string) string {
			return sitetest.ProviderHCL + sitetest.SecretsHCL + s.ControlPlaneHCL(extra) + `
data "talosop_machine_config" "spot" {
  cluster        = talosop_control_plane.this.cluster
  talos_version  = "v1.13.0"
  install        = { disk = "/dev/sda" }
  config_patches = [yamlencode({ machine = { nodeLabels = { "example.com/group" = "spot" } } })]
}
`
		}
		w := sitetest.Applied(t, cli, main(""))
		config, _ := w.Attribute("data.talosop_machine_config.spot", "config").(string)
		sitetest.Boot(t, s, sitetest.BundleIn(t, w), config)

		w.Write("main.tf", strings.Replace(main(`
  upgrade_unmanaged = {
    selector        = "example.com/group=spot"
    image           = "ghcr.io/siderolabs/installer"
    max_unavailable = "50%"
  }
`), `"v1.13.0"`, `"v1.13.2"`, 1))

		m := s.Workers[0]
		planned := w.MustRun("plan").Unwrapped()

		for _, line := range []string{"reach node " + m.Hostname() + " through control planes",
			"upgrade Talos on cp-1 and node " + m.Hostname() + ": v1.13.0 -> v1.13.2"} {
			if !strings.Contains(planned, line) {
				t.Errorf("the plan does not say %q:\n%s", line, planned)
			}
		}

		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after the upgrade")

		if got := m.TalosVersion(); got != "v1.13.2" || string(m.Config()) != config {
			t.Errorf("it runs %s, with its own configuration: %v", got, string(m.Config()) == config)
		}

		w.MustRun("destroy", "-auto-approve")
	})
}
