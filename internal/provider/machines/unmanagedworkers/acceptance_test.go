package unmanagedworkers_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
)

// The configuration that new machines get as user data is also that of the running ones.
func TestAccUnmanagedWorkers_followUserData(t *testing.T) {
	t.Parallel()

	sitetest.InOneCLI(t, func(t *testing.T, cli clitest.CLI) {
		s := sitetest.New(t, 1, 1)
		main := func(sysctls, workers string) string {
			return sitetest.ProviderHCL + sitetest.SecretsHCL + s.ControlPlaneHCL("") + `
data "talosop_machine_config" "spot" {
  cluster       = talosop_control_plane.this.cluster
  talos_version = "v1.13.0"
  install       = { disk = "/dev/sda" }
  labels        = { "example.com/group" = "spot" }
  sysctls       = ` + sysctls + `
}
` + workers
		}
		workers := `
resource "talosop_unmanaged_workers" "spot" {
  cluster  = talosop_control_plane.this.cluster
  selector = "example.com/group=spot"
  config   = data.talosop_machine_config.spot.config
}
`
		w := sitetest.Applied(t, cli, main("{}", ""))
		config, _ := w.Attribute("data.talosop_machine_config.spot", "config").(string)
		sitetest.Boot(t, s, sitetest.BundleIn(t, w), config)

		m := s.Workers[0]

		w.Write("main.tf", main("{}", workers))
		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after the create")

		w.Write("main.tf", main(`{ "net.core.somaxconn" = "65535" }`, workers))

		planned := w.MustRun("plan").Unwrapped()
		if line := "apply configuration to node " + m.Hostname() + " (no reboot)"; !strings.Contains(planned, line) {
			t.Errorf("the plan does not say %q:\n%s", line, planned)
		}

		w.MustRun("apply", "-auto-approve")
		sitetest.ExpectNoChanges(t, w, "after the change")

		want, _ := w.Attribute("data.talosop_machine_config.spot", "config").(string)
		if string(m.Config()) != want {
			t.Errorf("the configuration is not that of new machines:\n%s", m.Config())
		}

		w.MustRun("destroy", "-auto-approve", "-target=talosop_unmanaged_workers.spot")

		if string(m.Config()) != want || !m.Configured() {
			t.Error("the destroy changed the machine")
		}
	})
}
