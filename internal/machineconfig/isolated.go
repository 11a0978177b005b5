package machineconfig

import (
	"fmt"
	"net/netip"
	"net/url"

	"github.com/siderolabs/talos/pkg/machinery/config"
	configtypes "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/network"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// An isolated cluster has the secrets of another, running cluster, as a restore rehearsal does. Machines of both
// would find each other through discovery (by the cluster's id and secret, which are the same) or through a shared
// endpoint. And a control plane joins the etcd that it finds (Talos 1.13, cluster.DiscoveryServiceController and
// services/etcd.go). So an isolated cluster has no discovery, and only the endpoint of its settings.

// checkIsolated refuses settings that contradict isolation.
func checkIsolated(found *problems, c Cluster) {
	if c.Isolated && c.Discovery != nil && *c.Discovery {
		found.add("discovery", "true, with isolated = true", "false",
			"remove discovery: with it, the machines would join the cluster with the same secrets")
	}
}

// connects says which part of a finished configuration connects the machine of an isolated cluster to another one;
// empty when none does.
func connects(c Cluster, provider config.Provider) string {
	if !c.Isolated {
		return ""
	}

	const joins = ", so the machine could join the cluster with the same secrets, but isolated is true"

	if len(provider.DiscoveryServiceConfigs()) > 0 {
		return "the discovery service is on" + joins
	}

	// The other registry of it, in the Kubernetes API.
	if section := provider.Cluster(); section != nil && section.Discovery().Enabled() {
		return "cluster.discovery is enabled" + joins
	}

	if section := provider.K8sClusterConfig(); section != nil && section.ClusterEndpoint() != nil &&
		section.ClusterEndpoint().String() != c.Endpoint {
		return fmt.Sprintf("the endpoint of the cluster is %s, not %s%s", section.ClusterEndpoint(), c.Endpoint, joins)
	}

	return ""
}

// putEndpointAddress gives the host of the endpoint an address in the machine's table of hosts: containers of an
// isolated cluster reach no DNS server. An endpoint that is an address needs none.
func (g *Generator) putEndpointAddress(known []configtypes.Document, address netip.Addr) []configtypes.Document {
	endpoint, err := url.Parse(g.cluster.Endpoint)
	if err != nil || endpoint.Hostname() == "" {
		return known
	}

	if _, err := netip.ParseAddr(endpoint.Hostname()); err == nil {
		return known
	}

	if g.contract.MultidocNetworkConfigSupported() {
		host := network.NewStaticHostConfigV1Alpha1(address.String())
		host.Hostnames = []string{endpoint.Hostname()}

		return append(known, host)
	}

	entries := places.Make[[]*v1alpha1.ExtraHost](known, places.HostEntries)
	*entries = append(*entries,
		&v1alpha1.ExtraHost{HostIP: address.String(), HostAliases: []string{endpoint.Hostname()}})

	return known
}
