package provider

import (
	"maps"
	"strings"
	"testing"
)

// made is a control plane of one machine, with a patch that has a secret, and the provider that knows its secrets.
func (s *site) made(t *testing.T, patch string) (planes configuration, provider func(patches ...any) configuration) {
	t.Helper()

	bundle := bundleOnce()
	planes = configuration{
		"mode": "metal", "name": "test", "endpoint": s.endpoint, "talos_version": "v1.13.0",
		"kubernetes_version": "v1.36.2", "install": configuration{"disk": "/dev/sda"},
		"machines": configuration{"cp-1": configuration{"address": s.controlPlane[0].Address().String()}},
	}
	given := maps.Clone(planes)
	given["secrets"], given["config_patches"] = bundle, []any{patch}

	drive(t, "talosop_control_plane", nil).apply(t, given).must(t)
	s.unmarkNodes(t, bundle)

	return planes, func(patches ...any) configuration {
		return configuration{"clusters": configuration{"test": configuration{"secrets": bundle, "config_patches": patches}}}
	}
}

// What is secret in the configuration of a machine is in no patch of an import, and told; given to the provider it is no
// difference.
func TestImport_secretsInConfigurations(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0)
	planes, provider := s.made(t, registryPatch)
	id := encoded(t, map[string]any{"cluster": "test", "machines": addresses(s.controlPlane)})

	const place = `v1alpha1 machine.registries.config["registry.test"].auth`

	d := drive(t, "talosop_control_plane", provider())

	imported := d.imports(t, id)
	if imported.failed() || !strings.Contains(show(imported.diagnostics), "cp-1: "+place) {
		t.Errorf("the import says: %s", show(imported.diagnostics))
	}

	if strings.Contains(d.state.String(), registryPassword) || strings.Contains(show(imported.diagnostics), registryPassword) {
		t.Error("the import shows the password")
	}

	refreshed := d.refresh(t).must(t)
	planned := d.plan(t, planes).must(t)

	if operations := fieldsOf(t, planned.Value)["operations"].String(); !strings.Contains(operations, "machine.registries") {
		t.Errorf("the plan does %s, after %s", operations, show(refreshed.diagnostics))
	}

	d = drive(t, "talosop_control_plane", provider(registryPatch))
	if said := show(d.imports(t, id).must(t).diagnostics); said != "" {
		t.Errorf("the import with the patch of the provider says: %s", said)
	}

	d.expectEmpty(t, "after an import with the patch of the provider", planes)
}

// A configuration without what an import wrote down says by path what it takes off the machine.
func TestImport_configurationWithLess(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0)
	planes, provider := s.made(t, "machine: {sysctls: {net.core.somaxconn: \"1024\"}}")

	d := drive(t, "talosop_control_plane", provider())
	one := encoded(t, map[string]any{"cluster": "test", "machines": addresses(s.controlPlane)})
	d.imports(t, one).must(t)

	if patches := d.state.String(); strings.Count(patches, "net.core.somaxconn") != 1 {
		t.Errorf("the state has %s", patches)
	}

	planned := d.plan(t, planes).must(t)
	if operations := fieldsOf(t, planned.Value)["operations"].String(); !strings.Contains(operations,
		`- machine.sysctls["net.core.somaxconn"]`) {
		t.Errorf("the plan does %s", operations)
	}
}
