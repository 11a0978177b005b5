package clusterimport_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// Secrets in the configuration of a machine are reported and in no patch of an import. Once they are in the provider
// block, they are no difference.
func TestImport_secretsInConfigurations(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	planes, provider := s.MadeElsewhere(t, sitetest.RegistryPatch)
	id := tftest.JSON(t, map[string]any{"cluster": "test", "machines": sitetest.Addresses(s.ControlPlane)})

	const place = `v1alpha1 machine.registries.config["registry.test"].auth`

	d := tftest.Drive(t, "talosop_control_plane", provider())

	imported := d.Import(t, id)
	if imported.Failed() || !strings.Contains(tftest.Show(imported.Diagnostics), "cp-1: "+place) {
		t.Errorf("the import says: %s", tftest.Show(imported.Diagnostics))
	}

	if strings.Contains(d.State.String(), sitetest.RegistryPassword) || strings.Contains(tftest.Show(imported.Diagnostics),
		sitetest.RegistryPassword) {
		t.Error("the import shows the password")
	}

	refreshed := d.Refresh(t).Must(t)
	planned := d.Plan(t, planes).Must(t)

	if operations := tftest.FieldsOf(t, planned.Value)["operations"].String(); !strings.Contains(operations,
		"machine.registries") {
		t.Errorf("the plan does %s, after %s", operations, tftest.Show(refreshed.Diagnostics))
	}

	d = tftest.Drive(t, "talosop_control_plane", provider(sitetest.RegistryPatch))
	if diagnostics := tftest.Show(d.Import(t, id).Must(t).Diagnostics); diagnostics != "" {
		t.Errorf("the import with the patch of the provider says: %s", diagnostics)
	}

	d.ExpectEmpty(t, "after an import with the patch of the provider", planes)
}

// When the configuration lacks what an import wrote, the plan lists by path what it removes from the machine.
func TestImport_configurationWithLess(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	planes, provider := s.MadeElsewhere(t, "machine: {sysctls: {net.core.somaxconn: \"1024\"}}")

	d := tftest.Drive(t, "talosop_control_plane", provider())
	one := tftest.JSON(t, map[string]any{"cluster": "test", "machines": sitetest.Addresses(s.ControlPlane)})
	d.Import(t, one).Must(t)

	if patches := d.State.String(); strings.Count(patches, "net.core.somaxconn") != 1 {
		t.Errorf("the state has %s", patches)
	}

	planned := d.Plan(t, planes).Must(t)
	if operations := tftest.FieldsOf(t, planned.Value)["operations"].String(); !strings.Contains(operations,
		`- machine.sysctls["net.core.somaxconn"]`) {
		t.Errorf("the plan does %s", operations)
	}
}
