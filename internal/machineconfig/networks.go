package machineconfig

import (
	"fmt"
	"net/netip"
	"slices"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
)

// inside is an address of the cluster that is in one of its networks of pods or services: what is sent there stays on
// the machine, and Talos takes no such address for one of a machine (Talos 1.13, controllers/k8s/address_filter.go).
type inside struct {
	// what is "endpoint", "virtual IP" or "certificate SAN".
	what    string
	address netip.Addr
	// network is "pod" or "service".
	network string
	prefix  netip.Prefix
}

func (i inside) String() string {
	return fmt.Sprintf("the %s %s is in the %s network %s", i.what, i.address, i.network, i.prefix)
}

// addressesInNetworks finds the endpoint, virtual IPs and SANs of a finished configuration that are in its networks.
func addressesInNetworks(p coreconfig.Provider) []inside {
	var (
		found []inside
		facts = factsOf(p)
	)

	look := func(what string, address netip.Addr) {
		for _, prefix := range facts.PodCIDRs {
			if prefix.Contains(address.Unmap()) {
				found = append(found, inside{what, address, "pod", prefix})
			}
		}

		for _, prefix := range facts.ServiceCIDRs {
			if prefix.Contains(address.Unmap()) {
				found = append(found, inside{what, address, "service", prefix})
			}
		}
	}

	if section := p.K8sClusterConfig(); section != nil && section.ClusterEndpoint() != nil {
		lookAt(section.ClusterEndpoint().Hostname(), func(a netip.Addr) { look("endpoint", a) })
	}

	for _, address := range facts.VirtualIPs {
		look("virtual IP", address)
	}

	for _, san := range facts.CertSANs {
		lookAt(san, func(a netip.Addr) { look("certificate SAN", a) })
	}

	return found
}

// lookAt does something with a host that is an address.
func lookAt(host string, look func(netip.Addr)) {
	if address, err := netip.ParseAddr(host); err == nil {
		look(address)
	}
}

// inNetworks reports addresses of a configuration that are in its own networks: at the patch that puts them there, or
// at the attributes.
func (g *Generator) inNetworks(d *documents, m Machine) error {
	found := addressesInNetworks(d.known)
	if len(found) == 0 {
		return nil
	}

	if blamed := g.blame(m, found[0].String()); blamed.Field != "" {
		return blamed
	}

	var mistakes problems

	for _, i := range found {
		field := i.network + "_cidrs"
		if cidrs := g.cidrsOf(i.network); slices.Contains(cidrs, i.prefix.String()) {
			field = at(field, slices.Index(cidrs, i.prefix.String()))
		}

		mistakes.add(field, quoted(i.prefix.String()), "a network that no machine is in",
			"it contains the "+i.what+" "+i.address.String()+"; choose another one")
	}

	return mistakes.err()
}

// cidrsOf are the networks of an attribute.
func (g *Generator) cidrsOf(network string) []string {
	if network == "pod" {
		return g.cluster.PodCIDRs
	}

	return g.cluster.ServiceCIDRs
}
