package provider

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// A refresh warns of firmware that does not do what secure_boot says, whichever way round.
func TestSecureBoot_isComparedByARefresh(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0)
	machine := s.controlPlane[0]

	config := baseControlPlane()
	config["name"], config["endpoint"], config["kubernetes_version"] = "test", s.endpoint, "v1.35.4"
	config["machines"] = configuration{machine.Name(): configuration{"address": machine.Address().String()}}
	config["secure_boot"] = true

	plane := drive(t, "talosop_control_plane", nil)
	plane.apply(t, config).must(t)

	told := func(want string) {
		t.Helper()

		said := show(plane.refresh(t).must(t).diagnostics)
		if (said != "") != (want != "") || !strings.Contains(said, want) {
			t.Errorf("the refresh says %q, want %q", said, want)
		}
	}
	boot := func(secure bool) {
		t.Helper()

		machine.SetSecureBoot(secure)
		machine.PowerOff()
		machine.PowerOn()
		must(t, machine.AwaitStage(t.Context(), sim.StageRunning))
		must(t, machine.AwaitReady(t.Context()))
	}

	told("Secure Boot is off")
	boot(true)
	told("")

	config["secure_boot"] = false
	plane.apply(t, config).must(t)
	told("Secure Boot is on")
}
