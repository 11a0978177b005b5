package provider

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/image/schematic"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// An installer image that a patch or a document gives keeps its repository and schematic with another version.
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

			s := newSiteWith(t, sim.Options{TalosVersion: from}, 1, 0)
			machine := s.controlPlane[0]
			config := with(s.planeConfig(bundleOnce(), machine), []any{test.patch}, "config_patches")
			config["talos_version"] = from

			d := driveOn(t, quickProviderData(), "talosop_control_plane")
			d.ready(t, config)

			installer := func() string { return remembered(t, d.state)["cp-1"].Installer }
			if got := installer(); got != image+":"+from || machine.Schematic() != id {
				t.Errorf("installed is %s with schematic %s", got, machine.Schematic())
			}

			config["talos_version"] = test.to
			done := d.ready(t, config)

			if said := show(done.diagnostics); strings.Contains(said, "extension") {
				t.Errorf("the upgrade says: %s", said)
			}

			if got := installer(); got != image+":"+test.to || machine.TalosVersion() != test.to ||
				machine.Schematic() != id {
				t.Errorf("after the upgrade %s runs with schematic %s, installed from %s", machine.TalosVersion(),
					machine.Schematic(), got)
			}

			d.refresh(t).must(t)

			if planned := d.plan(t, config).must(t); !planned.Value.Equal(d.state) {
				t.Errorf("the plan after the upgrade has changes: %s", show(planned.diagnostics))
			}
		})
	}
}

// A change after which an image without the running system extensions is installed is a warning of the plan that names
// them, however the schematic was given and taken away.
func TestPlan_warnsOfRemovedExtensions(t *testing.T) {
	t.Parallel()

	const content = "customization:\n  systemExtensions:\n    officialExtensions:\n      - siderolabs/iscsi-tools\n" +
		"      - siderolabs/util-linux-tools\n"

	full, err := schematic.IDOf(content)
	must(t, err)

	const smaller = "customization:\n  systemExtensions:\n    officialExtensions:\n      - siderolabs/util-linux-tools\n"

	patch := func(version string) []any {
		return []any{"machine: {install: {image: \"factory.talos.dev/metal-installer/" + full + ":" + version + "\"}}\n"}
	}

	s := newSiteWith(t, sim.Options{Extensions: map[string][]string{full: {"util-linux-tools", "iscsi-tools"}}}, 1, 0)
	base := func() configuration { return s.planeConfig(bundleOnce(), s.controlPlane...) }
	newer := func(config configuration) configuration { return with(config, "v1.13.2", "talos_version") }

	d := driveOn(t, quickProviderData(), "talosop_control_plane")
	d.ready(t, with(base(), full, "schematic"))

	for name, test := range map[string]struct {
		config configuration
		lost   string
	}{
		"schematic and version":    {newer(base()), "cp-1: iscsi-tools, util-linux-tools."},
		"fewer extensions":         {with(base(), smaller, "schematic"), "cp-1: iscsi-tools."},
		"plain image by attribute": {with(base(), "ghcr.io/siderolabs/installer:v1.13.0", "install", "image"), "cp-1: iscsi-tools, util-linux-tools."},
		"plain image by patch": {newer(with(base(), []any{"machine: {install: {image: \"ghcr.io/siderolabs/installer:v1.13.0\"}}\n"},
			"config_patches")), "cp-1: iscsi-tools, util-linux-tools."},
		"same schematic by content": {newer(with(base(), content, "schematic")), ""},
		"same schematic by patch":   {newer(with(base(), patch("v1.13.2"), "config_patches")), ""},
	} {
		said := show(d.plan(t, test.config).must(t).diagnostics)
		if has := strings.Contains(said, "System extensions will be removed"); has != (test.lost != "") ||
			!strings.Contains(said, test.lost) {
			t.Errorf("%s: the plan says: %s", name, said)
		}
	}
}
