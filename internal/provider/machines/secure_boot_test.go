package machines_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// A plan warns of firmware that contradicts secure_boot, in either direction, and not of what it changes.
func TestSecureBoot_isComparedByAPlan(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	machine := s.ControlPlane[0]

	config := tftest.BaseControlPlane()
	config["name"], config["endpoint"], config["kubernetes_version"] = "test", s.URL, "v1.35.4"
	config["machines"] = tftest.Config{machine.Name(): tftest.Config{"address": machine.Address().String()}}
	config["secure_boot"] = true

	plane := tftest.Drive(t, "talosop_control_plane", nil)
	plane.Apply(t, config).Must(t)

	shows := func(want string) {
		t.Helper()

		diagnostics := tftest.Show(plane.RefreshedPlan(t, config).Diagnostics)
		if strings.Contains(diagnostics, "[secure_boot") != (want != "") || !strings.Contains(diagnostics, want) {
			t.Errorf("the plan shows %q, want %q", diagnostics, want)
		}
	}
	boot := func(secure bool) {
		t.Helper()

		machine.SetSecureBoot(secure)
		machine.PowerOff()
		machine.PowerOn()
		tftest.Must(t, machine.AwaitStage(t.Context(), sim.StageRunning))
		tftest.Must(t, machine.AwaitReady(t.Context()))
	}

	shows("[secure_boot_off]")
	boot(true)
	shows("")

	config["secure_boot"] = false
	shows("[secure_boot_on]")
	plane.Apply(t, config).Must(t)
	shows("[secure_boot_on]")

	config["secure_boot"] = true
	shows("")
}
