package machineconfig

import (
	"fmt"
	"net/netip"
	"slices"
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

// NetworkOf is the network of pods or services that an address is in, with its name, "pod" or "service"; ok is false
// for an address outside of them.
func (f Facts) NetworkOf(address netip.Addr) (name string, network netip.Prefix, ok bool) {
	contains := func(prefix netip.Prefix) bool { return prefix.Contains(address.Unmap()) }

	if i := slices.IndexFunc(f.PodCIDRs, contains); i >= 0 {
		return "pod", f.PodCIDRs[i], true
	}

	if i := slices.IndexFunc(f.ServiceCIDRs, contains); i >= 0 {
		return "service", f.ServiceCIDRs[i], true
	}

	return "", netip.Prefix{}, false
}

// addressesInNetworks finds the endpoint, virtual IPs and SANs that are in the networks of the same configuration.
func (f Facts) addressesInNetworks() []inside {
	var found []inside

	look := func(what string, address netip.Addr) {
		if name, network, ok := f.NetworkOf(address); ok {
			found = append(found, inside{what, address, name, network})
		}
	}

	lookAt := func(what, host string) {
		if address, err := netip.ParseAddr(host); err == nil {
			look(what, address)
		}
	}

	lookAt("endpoint", f.EndpointHost)

	for _, address := range f.VirtualIPs {
		look("virtual IP", address)
	}

	for _, san := range f.CertSANs {
		lookAt("certificate SAN", san)
	}

	return found
}

// overlap names a network of services that overlaps with one of pods; it is empty where they are apart.
func (f Facts) overlap() string {
	for _, service := range f.ServiceCIDRs {
		if i := slices.IndexFunc(f.PodCIDRs, service.Overlaps); i >= 0 {
			return fmt.Sprintf("the service network %s overlaps with the pod network %s", service, f.PodCIDRs[i])
		}
	}

	return ""
}

// inNetworks reports addresses of a configuration that are in its own networks: at the patch that puts them there, or
// at the attributes.
func (g *Generator) inNetworks(facts Facts, m Machine) error {
	found := facts.addressesInNetworks()
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
