package machines_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// No state contains patches of the provider's configuration, so no plan sees them change. The apply refuses what a
// disk with data does not allow, before it sends anything to a machine.
func TestProvidedPatches_thatADiskDoesNotTake(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	machine := s.ControlPlane[0]

	provider := func(passphrase string) tftest.Config {
		return tftest.Config{"clusters": tftest.Config{"test": tftest.Config{"secrets": tftest.Bundle(),
			"config_patches": []any{
				"apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nencryption: {provider: luks2, keys: " +
					"[{slot: 0, static: {passphrase: " + passphrase + "}}]}"}}}}
	}

	config := tftest.BaseControlPlane()
	config["name"], config["endpoint"], config["kubernetes_version"] = "test", s.URL, "v1.35.4"
	config["machines"] = tftest.Config{machine.Name(): tftest.Config{"address": machine.Address().String()}}
	delete(config, "secrets")

	plane := tftest.Drive(t, "talosop_control_plane", provider("open-sesame"))
	plane.Apply(t, config).Must(t)

	before := string(machine.Config())
	if !strings.Contains(before, "open-sesame") {
		t.Fatal("the disk has no passphrase")
	}

	s.ForgetCalls()

	plane = plane.Elsewhere(t, provider("close-sesame"))
	plane.Refresh(t).Must(t)

	diagnostics := tftest.Show(plane.Apply(t, config).Diagnostics)
	if !strings.Contains(diagnostics, "VolumeConfig/EPHEMERAL: all of its encryption keys would change") ||
		strings.Contains(diagnostics, "sesame") {
		t.Errorf("the apply says %s", diagnostics)
	}

	if sent := s.CallsTo("ApplyConfiguration"); len(sent) > 0 || string(machine.Config()) != before {
		t.Errorf("the machine was sent %v", sent)
	}
}
