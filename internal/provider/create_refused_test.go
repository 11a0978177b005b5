package provider

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// A create names all machines that lack the disk of their configurations, and sends nothing before.
func TestCreate_withoutTheDisk(t *testing.T) {
	t.Parallel()

	for name, install := range map[string]configuration{
		"path": {"disk": "/dev/vda"}, "selector": {"disk_selector": configuration{"model": "NONE"}},
	} {
		s := newSiteWith(t, sim.Options{}, 1, 2)

		config := func() configuration { return s.onMachines(s.endpoint, s.controlPlane, s.workers) }
		d := driveOn(t, quickProviderData(), "talosop_cluster")

		said := show(d.apply(t, with(with(config(), "1s", "appear_within"), install, "workers", "all", "install")).diagnostics)
		for _, want := range []string{
			"all/m-1: no disk matches ", "all/m-2: no disk matches ", "/dev/sda (22 GB, sata, SIMDISK)",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("%s: it does not say %q: %s", name, want, said)
			}
		}

		if sent := s.CallsTo("ApplyConfiguration"); len(sent) > 0 {
			t.Errorf("%s: %d machines got a configuration", name, len(sent))
		}

		d.ready(t, config())
	}
}

// A create whose configurations Talos refuses is an error and leaves no state, and says once why.
func TestCreate_thatTalosRefuses(t *testing.T) {
	t.Parallel()

	s := newSiteWith(t, sim.Options{}, 1, 0)
	d := driveOn(t, quickProviderData(), "talosop_cluster")

	s.SetOnCall(func(c fault.Call) error {
		if c.Method == "ApplyConfiguration" {
			return status.Error(codes.InvalidArgument, "a reason of Talos")
		}

		return nil
	})

	failed := d.apply(t, s.onMachines(s.endpoint, s.controlPlane, nil))
	if said := show(failed.diagnostics); !failed.failed() || !d.state.IsNull() || strings.Count(said, "a reason of Talos") != 1 {
		t.Errorf("with state %t it says %s", !d.state.IsNull(), said)
	}

	s.SetOnCall(nil)
	d.ready(t, s.onMachines(s.endpoint, s.controlPlane, nil))
}
