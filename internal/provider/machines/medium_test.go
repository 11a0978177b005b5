package machines_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// A machine that was booted from a newer medium installs the Talos of the configuration, which is no downgrade.
func TestCreate_fromANewerMedium(t *testing.T) {
	t.Parallel()

	for medium, version := range map[string]string{"v1.14.1": "v1.13.0", "v1.13.2": "v1.13.0"} {
		s := sitetest.NewWith(t, sim.Options{TalosVersion: medium}, 1, 1)

		config := sitetest.OnMachines(s, s.URL, s.ControlPlane, s.Workers)
		config["talos_version"] = version

		if version < medium {
			config["version_contract"] = "v1.13"
		}

		tftest.DriveWith(t, tftest.QuickProviderData(), "talosop_cluster").Ready(t, config)

		for _, m := range s.Machines() {
			if m.TalosVersion() != version {
				t.Errorf("booted from %s, %s runs %s, want %s", medium, m.Name(), m.TalosVersion(), version)
			}
		}
	}
}
