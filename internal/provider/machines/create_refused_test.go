package machines_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// A create names all machines that lack the disk of their configurations, and sends nothing before.
func TestCreate_withoutTheDisk(t *testing.T) {
	t.Parallel()

	for name, install := range map[string]tftest.Config{
		"path": {"disk": "/dev/vda"}, "selector": {"disk_selector": tftest.Config{"model": "NONE"}},
	} {
		s := sitetest.NewWith(t, sim.Options{}, 1, 2)

		config := func() tftest.Config { return sitetest.OnMachines(s, s.URL, s.ControlPlane, s.Workers) }
		d := tftest.DriveWith(t, tftest.QuickProviderData(), "talosop_cluster")

		diagnostics := tftest.Show(d.Apply(t, tftest.With(tftest.With(config(), "1s", "appear_within"), install, "workers", "all",
			"install")).Diagnostics)
		for _, want := range []string{
			"all/m-1 and all/m-2: no disk matches ", "/dev/sda (21 GB, sata, SIMDISK)",
		} {
			if !strings.Contains(diagnostics, want) {
				t.Errorf("%s: it does not say %q: %s", name, want, diagnostics)
			}
		}

		if sent := s.CallsTo("ApplyConfiguration"); len(sent) > 0 {
			t.Errorf("%s: %d machines got a configuration", name, len(sent))
		}

		d.Ready(t, config())
	}
}

// A create whose configurations Talos refuses is an error, leaves no state, and reports the reason once.
func TestCreate_thatTalosRefuses(t *testing.T) {
	t.Parallel()

	s := sitetest.NewWith(t, sim.Options{}, 1, 0)
	d := tftest.DriveWith(t, tftest.QuickProviderData(), "talosop_cluster")

	s.SetOnCall(func(c fault.Call) error {
		if c.Method == "ApplyConfiguration" {
			return status.Error(codes.InvalidArgument, "a reason of Talos")
		}

		return nil
	})

	failed := d.Apply(t, sitetest.OnMachines(s, s.URL, s.ControlPlane, nil))
	if diagnostics := tftest.Show(failed.Diagnostics); !failed.Failed() || !d.State.IsNull() ||
		strings.Count(diagnostics, "a reason of Talos") != 1 {
		t.Errorf("with state %t it says %s", !d.State.IsNull(), diagnostics)
	}

	s.SetOnCall(nil)
	d.Ready(t, sitetest.OnMachines(s, s.URL, s.ControlPlane, nil))
}
