package machines_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/image/schematic"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// An installer image from a patch or a document keeps its repository and schematic with another version.
func TestUpgrade_keepsThePatchedInstaller(t *testing.T) {
	t.Parallel()

	const (
		id    = "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515"
		image = "factory.talos.dev/metal-installer/" + id
	)

	for from, test := range map[string]struct{ to, patch string }{
		"v1.13.0": {"v1.13.2", "machine: {install: {image: \"" + image + ":v1.13.0\"}}\n"},
		"v1.14.0": {"v1.14.1",
			"apiVersion: v1alpha1\nkind: UnattendedInstallConfig\ninstaller: {image: \"" + image + ":v1.14.0\"}\n"},
	} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()

			s := sitetest.NewWith(t, sim.Options{TalosVersion: from}, 1, 0)
			machine := s.ControlPlane[0]
			config := tftest.With(planeConfig(s, tftest.Bundle(), machine), []any{test.patch}, "config_patches")
			config["talos_version"] = from

			d := tftest.DriveWith(t, tftest.QuickProviderData(), "talosop_control_plane")
			d.Ready(t, config)

			installer := func() string { return tftest.Remembered(t, d.State)["cp-1"].Installer }
			if got := installer(); got != image+":"+from || machine.Schematic() != id {
				t.Errorf("installed is %s with schematic %s", got, machine.Schematic())
			}

			config["talos_version"] = test.to
			done := d.Ready(t, config)

			if diagnostics := tftest.Show(done.Diagnostics); strings.Contains(diagnostics, "extension") {
				t.Errorf("the upgrade says: %s", diagnostics)
			}

			if got := installer(); got != image+":"+test.to || machine.TalosVersion() != test.to ||
				machine.Schematic() != id {
				t.Errorf("after the upgrade %s runs with schematic %s, installed from %s", machine.TalosVersion(),
					machine.Schematic(), got)
			}

			d.Refresh(t).Must(t)

			if planned := d.Plan(t, config).Must(t); !planned.Value.Equal(d.State) {
				t.Errorf("the plan after the upgrade has changes: %s", tftest.Show(planned.Diagnostics))
			}
		})
	}
}

// The plan warns of a change that installs an image without the running system extensions, and names them, however
// the schematic was set and removed.
func TestPlan_warnsOfRemovedExtensions(t *testing.T) {
	t.Parallel()

	const content = "customization:\n  systemExtensions:\n    officialExtensions:\n      - siderolabs/iscsi-tools\n" +
		"      - siderolabs/util-linux-tools\n"

	full, err := schematic.IDOf(content)
	tftest.Must(t, err)

	const smaller = "customization:\n  systemExtensions:\n    officialExtensions:\n      - siderolabs/util-linux-tools\n"

	patch := func(version string) []any {
		return []any{"machine: {install: {image: \"factory.talos.dev/metal-installer/" + full + ":" + version + "\"}}\n"}
	}

	s := sitetest.NewWith(t, sim.Options{Extensions: map[string][]string{full: {"util-linux-tools", "iscsi-tools"}}}, 1, 0)
	base := func() tftest.Config { return planeConfig(s, tftest.Bundle(), s.ControlPlane...) }
	newer := func(config tftest.Config) tftest.Config { return tftest.With(config, "v1.13.2", "talos_version") }

	d := tftest.DriveWith(t, tftest.QuickProviderData(), "talosop_control_plane")
	d.Ready(t, tftest.With(base(), full, "schematic"))

	for name, test := range map[string]struct {
		config tftest.Config
		lost   string
	}{
		"schematic and version": {newer(base()), "cp-1: iscsi-tools, util-linux-tools"},
		"fewer extensions":      {tftest.With(base(), smaller, "schematic"), "cp-1: iscsi-tools"},
		"plain image by attribute": {tftest.With(base(), "ghcr.io/siderolabs/installer:v1.13.0", "install", "image"),
			"cp-1: iscsi-tools, util-linux-tools"},
		"plain image by patch": {newer(tftest.With(base(),
			[]any{"machine: {install: {image: \"ghcr.io/siderolabs/installer:v1.13.0\"}}\n"},
			"config_patches")), "cp-1: iscsi-tools, util-linux-tools"},
		"same schematic by content": {newer(tftest.With(base(), content, "schematic")), ""},
		"same schematic by patch":   {newer(tftest.With(base(), patch("v1.13.2"), "config_patches")), ""},
	} {
		diagnostics := tftest.Show(d.Plan(t, test.config).Must(t).Diagnostics)
		if has := strings.Contains(diagnostics, "[extensions_removed]"); has != (test.lost != "") ||
			!strings.Contains(diagnostics, test.lost) {
			t.Errorf("%s: the plan says: %s", name, diagnostics)
		}
	}
}
