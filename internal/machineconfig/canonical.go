package machineconfig

import (
	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/network"
)

// withCanonicalNetworks writes the networks and the domain of a cluster in one way: to Talos all spellings say the
// same. They are in the main document or in one of their own.
func withCanonicalNetworks(id identity, content any) any {
	settings, _ := content.(map[string]any)

	switch id.kind {
	case "":
		section, _ := settings["cluster"].(map[string]any)
		settings, _ = section["network"].(map[string]any)
	case k8s.KubeNetworkConfig:
	default:
		return content
	}

	if domain, ok := settings["dnsDomain"].(string); ok {
		settings["dnsDomain"] = network.CanonicalDomain(domain)
	}

	for _, field := range []string{"podSubnets", "serviceSubnets"} {
		list, _ := settings[field].([]any)
		for i, element := range list {
			if cidr, ok := element.(string); ok {
				list[i] = network.Canonical([]string{cidr})[0]
			}
		}
	}

	return content
}
