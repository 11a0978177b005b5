package provider

import (
	"strings"
	"testing"
)

// Patches of the provider's configuration are in no state, so that no plan sees how they change: what a disk with data
// does not take is refused by the apply, before a machine is sent anything.
func TestProvidedPatches_thatADiskDoesNotTake(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 0)
	machine := s.controlPlane[0]

	provider := func(passphrase string) configuration {
		return configuration{"clusters": configuration{"test": configuration{"secrets": bundleOnce(), "config_patches": []any{
			"apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nencryption: {provider: luks2, keys: " +
				"[{slot: 0, static: {passphrase: " + passphrase + "}}]}"}}}}
	}

	config := baseControlPlane()
	config["name"], config["endpoint"], config["kubernetes_version"] = "test", s.endpoint, "v1.35.4"
	config["machines"] = configuration{machine.Name(): configuration{"address": machine.Address().String()}}
	delete(config, "secrets")

	plane := drive(t, "talosop_control_plane", provider("open-sesame"))
	plane.apply(t, config).must(t)

	before := string(machine.Config())
	if !strings.Contains(before, "open-sesame") {
		t.Fatal("the disk has no passphrase")
	}

	s.ForgetCalls()

	plane = plane.elsewhere(t, provider("close-sesame"))
	plane.refresh(t).must(t)

	said := show(plane.apply(t, config).diagnostics)
	if !strings.Contains(said, "VolumeConfig/EPHEMERAL: all of its encryption keys would change") ||
		strings.Contains(said, "sesame") {
		t.Errorf("the apply says %s", said)
	}

	if sent := s.CallsTo("ApplyConfiguration"); len(sent) > 0 || string(machine.Config()) != before {
		t.Errorf("the machine was sent %v", sent)
	}
}
