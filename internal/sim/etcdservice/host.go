package etcdservice

import (
	"net/netip"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// etcdAddress is what the member of a machine announces: an address of its configuration's advertisedSubnets, where an
// interface has it, and its own otherwise (Talos 1.13, etcd/spec.go). What is sent to one of the first kind arrives
// wherever the machine is, as behind a Service.
func (s *Service) etcdAddress() netip.Addr {
	own := s.Address()

	config := s.Config()
	if !machined.Complete(config) {
		return own
	}

	for _, subnet := range config.Cluster().Etcd().AdvertisedSubnets() {
		wanted, err := netip.ParsePrefix(subnet)
		if err != nil {
			continue
		}

		for _, device := range config.Machine().Network().Devices() {
			for _, text := range device.Addresses() {
				if has, err := netip.ParsePrefix(text); err == nil && wanted.Contains(has.Addr()) {
					return has.Addr()
				}
			}
		}
	}

	return own
}

// etcdHost is the machine as its member knows it.
func (s *Service) etcdHost() etcd.Host {
	return etcd.Host{
		Machine: s.Name(), Hostname: s.Hostname(), Address: s.Address(), Announced: s.etcdAddress(),
		CA: s.Config().Cluster().Etcd().CA(), Version: versionOf(s.image()), SplitHTTP: s.Since(1, 14),
	}
}
