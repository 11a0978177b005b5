package provider

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// A machine that joins with the configuration of the data source is seen by the control plane and in the cluster's
// health, changes no plan, also when it goes again, and is named and left alone by a destroy.
func TestAccUnmanaged_isSeenAndStays(t *testing.T) {
	t.Parallel()

	inOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := newSite(t, 1, 2)
		w := applied(t, cli, secretsProvider+secretsHCL+s.controlPlaneHCL("")+s.workersOf(s.workers[:1], "")+`
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
		s.boot(t, bundleIn(t, w), config)

		name := s.workers[1].Hostname()

		expectNoChanges(t, w, "after the other machine joined")
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

		said := w.MustRun("plan", "-destroy").Unwrapped()
		if !strings.Contains(said, "Nodes stay that no resource has") || !strings.Contains(said, name) {
			t.Errorf("the plan of a destroy does not say what stays:\n%s", said)
		}

		w.MustRun("destroy", "-auto-approve")

		if m := s.workers[1]; string(m.Config()) != config || m.Stage() == sim.StageMaintenance {
			t.Error("the machine that others made was touched")
		}
	})
}
