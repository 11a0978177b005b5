package migrate

import (
	"fmt"
	"net/netip"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"go.yaml.in/yaml/v4"
)

// document is a document of a machine configuration as YAML has it.
type document map[string]any

func newDocument(kind, name string) document {
	d := document{"apiVersion": "v1alpha1", "kind": kind}
	if name != "" {
		d["name"] = name
	}

	return d
}

// documents are the documents of a node, one text for each (talhelper v3, pkg/talos/multidocs.go).
func (r *talhelperReader) documents(node talhelperNode, contract *coreconfig.VersionContract) ([]string, error) {
	var all []document

	if contract.MultidocNetworkConfigSupported() {
		all = append(nameDocuments(node), r.linkDocuments(node)...)
	}

	if firewall := node.Firewall; firewall != nil {
		action := newDocument("NetworkDefaultActionConfig", "")
		if action["ingress"] = firewall.DefaultAction; firewall.DefaultAction == "" {
			action["ingress"] = "accept" // the zero value, whatever talhelper's documentation says
		}

		all = append(all, action)

		for _, rule := range firewall.Rules {
			all = append(all, with(newDocument("NetworkRuleConfig", ""), rule))
		}
	}

	for _, of := range []struct {
		kind    string
		written []map[string]any
	}{
		{"ExtensionServiceConfig", node.ExtensionServices}, {"VolumeConfig", node.Volumes},
		{"UserVolumeConfig", node.UserVolumes},
	} {
		for _, one := range of.written {
			all = append(all, with(newDocument(of.kind, ""), one))
		}
	}

	var texts []string

	for _, d := range all {
		text, err := yaml.Marshal(map[string]any(d))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d["kind"], err)
		}

		texts = append(texts, string(text))
	}

	return texts, nil
}

func with(d document, fields map[string]any) document {
	for key, value := range fields {
		d[key] = value
	}

	return d
}

// nameDocuments are the names and name servers of a node.
func nameDocuments(node talhelperNode) []document {
	var all []document

	if len(node.Nameservers) > 0 || node.DisableSearchDomain {
		resolver := newDocument("ResolverConfig", "")

		var servers []any
		for _, address := range node.Nameservers {
			servers = append(servers, map[string]any{"address": address})
		}

		if len(servers) > 0 {
			resolver["nameservers"] = servers
		}

		resolver["searchDomains"] = map[string]any{"disableDefault": node.DisableSearchDomain}
		all = append(all, resolver)
	}

	hostname := newDocument("HostnameConfig", "")
	if node.IgnoreHostname {
		hostname["auto"] = "stable"
	} else {
		hostname["hostname"], hostname["auto"] = node.Hostname, "off"
	}

	return append(all, hostname)
}

const devicesInDocuments = "from Talos 1.12, talhelper writes a bond, bridge, WireGuard link or device selector as " +
	"documents that the migration does not make: run `talhelper genconfig`, and repeat the migration with -configs " +
	"clusterconfig"

// linkDocuments are the network interfaces of a node whose links are named.
func (r *talhelperReader) linkDocuments(node talhelperNode) []document {
	var all []document

	for i, device := range node.Interfaces {
		if device.DeviceSelector != nil || device.DeviceBond != nil || device.DeviceBridge != nil ||
			device.DeviceWireguardConfig != nil {
			r.cluster.omit(fmt.Sprintf("%s: networkInterfaces[%d]", node.Hostname, i), devicesInDocuments)

			continue
		}

		name := device.DeviceInterface

		if device.DHCP() {
			all = append(all, dhcpDocuments(name, device.DeviceDHCPOptions)...)
		}

		if vip := device.DeviceVIPConfig; vip != nil && vip.SharedIP != "" {
			all = append(all, with(newDocument("Layer2VIPConfig", vip.SharedIP), document{"link": name}))
		}

		if link := linkFields(device.DeviceAddresses, device.DeviceRoutes, device.DeviceMTU); len(link) > 0 {
			all = append(all, with(newDocument("LinkConfig", name), link))
		}

		for _, vlan := range device.DeviceVlans {
			all = append(all, vlanDocuments(name, vlan)...)
		}
	}

	return all
}

func vlanDocuments(parent string, vlan *v1alpha1.Vlan) []document {
	if vlan.VlanID == 0 {
		return nil
	}

	name := fmt.Sprintf("%s.%d", parent, vlan.VlanID)

	all := []document{with(newDocument("VLANConfig", name), with(document{"vlanID": vlan.VlanID, "parent": parent},
		linkFields(vlan.VlanAddresses, vlan.VlanRoutes, int(vlan.VlanMTU))))}

	if vlan.DHCP() {
		all = append(all, dhcpDocuments(name, vlan.VlanDHCPOptions)...)
	}

	if vlan.VlanVIP != nil {
		all = append(all, with(newDocument("Layer2VIPConfig", vlan.VIPConfig().IP()), document{"link": name}))
	}

	return all
}

func dhcpDocuments(link string, options *v1alpha1.DHCPOptions) []document {
	if options == nil {
		options = &v1alpha1.DHCPOptions{}
	}

	var all []document

	for _, of := range []struct {
		kind string
		on   bool
	}{{"DHCPv4Config", options.IPv4()}, {"DHCPv6Config", options.IPv6()}} {
		if !of.on {
			continue
		}

		d := newDocument(of.kind, link)
		if metric := options.RouteMetric(); metric > 0 {
			d["routeMetric"] = metric
		}

		all = append(all, d)
	}

	return all
}

// linkFields are the addresses, routes and MTU of a link.
func linkFields(addresses []string, routes []*v1alpha1.Route, mtu int) document {
	fields := document{}

	var list []any
	for _, address := range addresses {
		list = append(list, map[string]any{"address": withBits(address)})
	}

	if len(list) > 0 {
		fields["addresses"] = list
	}

	list = nil

	for _, route := range routes {
		list = append(list, routeFields(route))
	}

	if len(list) > 0 {
		fields["routes"] = list
	}

	if mtu > 0 {
		fields["mtu"] = mtu
	}

	return fields
}

// withBits is an address with its prefix length: that of the address alone where none is written.
func withBits(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		return netip.PrefixFrom(ip, ip.BitLen()).String()
	}

	return address
}

// routeFields are a route. A default route has no destination: Talos takes the family from the gateway.
func routeFields(route *v1alpha1.Route) map[string]any {
	fields := map[string]any{}

	for key, value := range map[string]string{"destination": route.Network(), "gateway": route.Gateway(),
		"source": route.Source()} {
		if value != "" && (key != "destination" || value != "0.0.0.0/0" && value != "::/0") {
			fields[key] = value
		}
	}

	for key, value := range map[string]uint32{"metric": route.Metric(), "mtu": route.MTU()} {
		if value > 0 {
			fields[key] = value
		}
	}

	return fields
}
