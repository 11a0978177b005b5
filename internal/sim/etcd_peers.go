package sim

import (
	"net/netip"
	"sync"
)

// etcdAddress is what the member of a machine announces: an address of its configuration's advertisedSubnets, where an interface has it, and
// its own otherwise (Talos 1.13, etcd/spec.go). What is sent to one of the first kind arrives wherever the machine is, as behind a
// Service.
func (b *boot) etcdAddress() netip.Addr {
	own := b.m.Address()

	config := b.config()
	if !complete(config) {
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

// standIns are addresses of the site at which real members of etcd listen for their peers, in place of what they announce and no process
// can listen at.
type standIns struct {
	mu   sync.Mutex
	to   map[netip.Addr]netip.Addr // what is announced
	from map[netip.Addr]netip.Addr // by what is announced
}

// of is what a stand-in is announced as.
func (s *standIns) of(standIn netip.Addr) (announced netip.Addr, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	announced, ok = s.to[standIn]

	return announced, ok
}

// standIn is where the peers of a machine's real member find it: always the same place for what it announces.
func (s *Simulator) standIn(b *boot) (netip.Addr, error) {
	announced := b.etcdAddress()
	if announced == b.m.Address() {
		return announced, nil
	}

	s.standIns.mu.Lock()
	defer s.standIns.mu.Unlock()

	if known, ok := s.standIns.from[announced]; ok {
		return known, nil
	}

	taken, err := s.addrs.take(netip.Addr{})
	if err != nil {
		return taken, err
	}

	if s.standIns.to == nil {
		s.standIns.to, s.standIns.from = map[netip.Addr]netip.Addr{}, map[netip.Addr]netip.Addr{}
	}

	s.standIns.to[taken], s.standIns.from[announced] = announced, taken

	return taken, nil
}
