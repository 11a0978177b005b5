package machineconfig

import (
	"github.com/siderolabs/talos/pkg/machinery/config/types/runtime"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/network"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// withCanonicalNetworks writes the networks and the domain of a cluster in one way: to Talos all spellings say the
// same.
func withCanonicalNetworks(id identity, content any) any {
	root, _ := content.(map[string]any)

	if at, ok := places.DNSDomain.Of(id.kind); ok {
		section, key := sectionOf(root, at.Path)
		if domain, ok := section[key].(string); ok {
			section[key] = network.CanonicalDomain(domain)
		}
	}

	for _, f := range []places.Fact{places.PodCIDRs, places.ServiceCIDRs} {
		at, ok := f.Of(id.kind)
		if !ok {
			continue
		}

		list, _ := valueIn(root, at.Path).([]any)
		for i, element := range list {
			if cidr, ok := element.(string); ok {
				list[i] = network.Canonical([]string{cidr})[0]
			}
		}
	}

	return content
}

// withInstallReboot writes out that an installation ends in a reboot, where a document does not say it and has no
// image: generated documents do (settleInstall), and a machine that runs has its installation behind it.
func withInstallReboot(id identity, content any) any {
	root, ok := content.(map[string]any)
	if !ok || id.kind != runtime.UnattendedInstallConfigKind {
		return content
	}

	if at, _ := places.InstallerImage.Of(id.kind); valueIn(root, at.Path) == nil && root["reboot"] == nil {
		root["reboot"] = true
	}

	return root
}
