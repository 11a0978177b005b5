package machineconfig

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
)

// unannounced says what is wrong where etcd is to be announced at the address for peers alone, and patches took that
// from the machine: Talos announces etcd at addresses that the machine has, and waits for one for ever (Talos 1.13,
// etcd/spec.go). Patches that replace or delete what the interface is in do that; those that merge leave it.
func unannounced(d *documents, m Machine) string {
	main := d.known.RawV1Alpha1()
	if m.Mode != Container || m.Role != ControlPlane || !m.PeerAddress.IsValid() || main.ClusterConfig.EtcdConfig == nil {
		return ""
	}

	own := netip.PrefixFrom(m.PeerAddress, m.PeerAddress.BitLen()).String()
	if !slices.Equal(main.ClusterConfig.EtcdConfig.EtcdAdvertisedSubnets, []string{own}) || d.hasAddress(m.PeerAddress) {
		return ""
	}

	return fmt.Sprintf("cluster.etcd.advertisedSubnets is %s, but no interface has that address, so etcd would not "+
		"start: keep the interface %s with it in machine.network.interfaces (with a merge patch, or a patch that "+
		"adds one interface), or also set cluster.etcd.advertisedSubnets", own, loopback)
}

// hasAddress reports whether a configuration gives an address to an interface. A document of an unknown kind
// counts as one that does.
func (d *documents) hasAddress(address netip.Addr) bool {
	has := func(text string) bool {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			return prefix.Addr() == address
		}

		other, err := netip.ParseAddr(text)

		return err == nil && other == address
	}

	for _, device := range d.known.RawV1Alpha1().Machine().Network().Devices() {
		if slices.ContainsFunc(device.Addresses(), has) {
			return true
		}

		for _, vlan := range device.Vlans() {
			if slices.ContainsFunc(vlan.Addresses(), has) {
				return true
			}
		}
	}

	for _, document := range d.known.Documents() {
		link, ok := document.(config.NetworkCommonLinkConfig)
		if ok && slices.ContainsFunc(link.Addresses(),
			func(a config.NetworkAddressConfig) bool { return a.Address().Addr() == address }) {
			return true
		}
	}

	return slices.ContainsFunc(d.unknown,
		func(raw rawDocument) bool { return strings.Contains(raw.text, address.String()) })
}
