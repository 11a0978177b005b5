package machineconfig

import (
	"net/netip"
	"net/url"
)

// subnet is one element of pod_cidrs or service_cidrs.
type subnet struct {
	field  string
	prefix netip.Prefix
}

// checkNetworks looks at pod and service networks together, since they must not touch each other or contain
// the endpoint: traffic to it would never leave the machine. Where the settings are complete, the finished
// configuration says which networks there are: see inNetworks.
func checkNetworks(found *problems, c Cluster, endpoint string, s strictness) {
	defaultPods, defaultServices := Cluster{Container: c.Container}.networks()
	pods := checkCIDRs(found, "pod_cidrs", c.PodCIDRs, defaultPods[0], s)
	services := checkCIDRs(found, "service_cidrs", c.ServiceCIDRs, defaultServices[0], s)

	for _, service := range services {
		for _, pod := range pods {
			switch {
			case !service.prefix.Overlaps(pod.prefix):
			case len(c.ServiceCIDRs) == 0 && len(c.PodCIDRs) > 0:
				found.add(pod.field, quoted(pod.prefix.String()), "a network that does not overlap with service_cidrs",
					"it overlaps with "+service.prefix.String()+
						", the default of service_cidrs; choose another one, or set service_cidrs as well")
			default:
				found.add(service.field, quoted(service.prefix.String()), "a network that does not overlap with pod_cidrs",
					"it overlaps with "+pod.prefix.String()+" of "+pod.field+"; choose another one")
			}
		}
	}

	address, err := netip.ParseAddr(endpoint)
	if err != nil || s == complete || len(c.Patches)+len(c.ProvidedPatches) > 0 {
		return
	}

	for _, subnet := range append(pods, services...) {
		if subnet.prefix.Contains(address.Unmap()) {
			found.add(subnet.field, quoted(subnet.prefix.String()), "a network that no machine is in",
				"it contains the endpoint "+endpoint+"; choose another one")
		}
	}
}

// checkCIDRs returns the networks that are known and right. An empty list means the default of Talos.
func checkCIDRs(found *problems, field string, cidrs []string, fallback string, s strictness) []subnet {
	if len(cidrs) == 0 {
		return []subnet{{field: field, prefix: netip.MustParsePrefix(fallback)}}
	}

	var (
		networks []subnet
		family   = map[bool]string{}
	)

	for i, cidr := range cidrs {
		if cidr == "" && s == partial {
			continue
		}

		prefix, ok := checkCIDR(found, at(field, i), cidr)
		if !ok {
			continue
		}

		if earlier, ok := family[prefix.Addr().Is4()]; ok {
			found.add(at(field, i), quoted(cidr), "at most one IPv4 and one IPv6 network",
				"remove it, or use an address family other than that of "+earlier)

			continue
		}

		family[prefix.Addr().Is4()] = at(field, i)
		networks = append(networks, subnet{field: at(field, i), prefix: prefix})
	}

	return networks
}

func checkCIDR(found *problems, field, cidr string) (netip.Prefix, bool) {
	const shape = "a network in CIDR notation, such as 10.244.0.0/16 or fd00:10::/56"

	prefix, err := netip.ParsePrefix(cidr)

	switch {
	case err != nil:
		fix := "write address and prefix length with a slash between them"
		if _, addrErr := netip.ParseAddr(cidr); addrErr == nil {
			fix = "add the prefix length after a slash"
		}

		found.add(field, quoted(cidr), shape, fix)

		return netip.Prefix{}, false
	case prefix != prefix.Masked():
		found.add(field, quoted(cidr), shape, "the address has bits set after the prefix; write "+prefix.Masked().String())

		return netip.Prefix{}, false
	case prefix.Addr().Is4In6():
		found.add(field, quoted(cidr), shape, "write the IPv4 network as such")

		return netip.Prefix{}, false
	case prefix.Bits() == 0:
		found.add(field, quoted(cidr), shape, "it covers the whole internet; choose a private network")

		return netip.Prefix{}, false
	}

	return prefix, true
}

func checkCNI(found *problems, c Cluster, s strictness) {
	cni := c.CNI

	switch cni.Name {
	case "", CNIFlannel:
	case CNICustom:
		if len(cni.URLs) == 0 && s == complete {
			found.add("cni.urls", "no URLs", "at least one URL of a manifest with the CNI custom",
				"add the manifests of the pod network, or set the CNI to none and install it by other means")
		}
	case CNINone:
	default:
		found.add("cni.name", quoted(cni.Name), "flannel, custom or none", "choose one of them")

		return
	}

	if len(cni.URLs) > 0 && cni.Name != CNICustom && (cni.Name != "" || s == complete) {
		found.add("cni.urls", "URLs with the CNI "+orDefault(cni.Name, CNIFlannel), "URLs with the CNI custom only",
			`set cni.name to "custom", or remove the URLs`)
	}

	if cni.Flannel != nil && cni.Name != CNIFlannel && cni.Name != "" {
		found.add("cni.flannel", "options of flannel with the CNI "+cni.Name, "options of flannel with the CNI flannel only",
			"remove them")
	}

	for i, manifest := range cni.URLs {
		if manifest == "" && s == partial {
			continue
		}

		parsed, err := url.Parse(manifest)
		if err != nil || (parsed.Scheme != "https" && parsed.Scheme != "http") || parsed.Hostname() == "" {
			found.add(at("cni.urls", i), withoutUserinfo(manifest), "an http or https URL of a manifest", "write the whole URL")
		}
	}

	if cni.Flannel != nil && cni.Flannel.KubeNetworkPolicies && c.Contract != "" {
		// New in Talos 1.13 (release notes, "Flannel CNI with Network Policy Support"); older machines refuse the field.
		if contract, err := parseContract(c.Contract); err == nil && contract.Minor < 13 {
			found.add("cni.flannel.kube_network_policies", "network policies with contract "+c.Contract,
				"network policies with contract v1.13",
				"switch them off, or raise the contract when all machines run Talos v1.13")
		}
	}
}

func orDefault(value, fallback string) string {
	if value == "" {
		return fallback
	}

	return value
}

// withoutUserinfo quotes a URL unless it may hold a password.
func withoutUserinfo(s string) string {
	for _, r := range s {
		if r == '@' {
			return "a URL with credentials"
		}
	}

	return quoted(s)
}
