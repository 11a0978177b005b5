package machineconfig

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/types/k8s"
)

// CanonicalNetworks gives the same texts for all spellings of the same networks, in their order, of which the first is
// the primary one. What is no network, or has bits set after its prefix, stays as it is, to be refused as it was
// written.
func CanonicalNetworks(cidrs []string) []string {
	out := slices.Clone(cidrs)

	for i, cidr := range out {
		if network, err := netip.ParsePrefix(cidr); err == nil && network == network.Masked() {
			out[i] = network.String()
		}
	}

	return out
}

// CanonicalDomain gives the same text for all spellings of a DNS domain, which differ in case. What is none stays as it
// is.
func CanonicalDomain(domain string) string {
	if lower := strings.ToLower(domain); isDNSName(lower) {
		return lower
	}

	return domain
}

// SameNetworks is whether two lists are the same networks. An empty one is fallback.
func SameNetworks(a, b []string, fallback string) bool {
	given := func(cidrs []string) []string {
		if len(cidrs) == 0 {
			return []string{fallback}
		}

		return CanonicalNetworks(cidrs)
	}

	return slices.Equal(given(a), given(b))
}

// SameDomain is whether two names are the same DNS domain. An empty one is fallback.
func SameDomain(a, b, fallback string) bool {
	return CanonicalDomain(cmp.Or(a, fallback)) == CanonicalDomain(cmp.Or(b, fallback))
}

// withCanonicalNetworks writes the networks and the domain of a cluster in one way: to Talos all spellings say the
// same. They are in the main document or in one of their own.
func withCanonicalNetworks(id identity, content any) any {
	network, _ := content.(map[string]any)

	switch id.kind {
	case "":
		section, _ := network["cluster"].(map[string]any)
		network, _ = section["network"].(map[string]any)
	case k8s.KubeNetworkConfig:
	default:
		return content
	}

	if domain, ok := network["dnsDomain"].(string); ok {
		network["dnsDomain"] = CanonicalDomain(domain)
	}

	for _, field := range []string{"podSubnets", "serviceSubnets"} {
		list, _ := network[field].([]any)
		for i, element := range list {
			if cidr, ok := element.(string); ok {
				list[i] = CanonicalNetworks([]string{cidr})[0]
			}
		}
	}

	return content
}
