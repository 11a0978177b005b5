package sim

import (
	"net/netip"
	"sync"
)

// standIns are addresses of the site at which real members of etcd listen for their peers, in place of what they announce and no process
// can listen at.
type standIns struct {
	take func() (netip.Addr, error) // finds an address that nobody has

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
func (s *standIns) standIn(h etcdHost) (netip.Addr, error) {
	if h.announced == h.address {
		return h.announced, nil
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	if known, ok := s.from[h.announced]; ok {
		return known, nil
	}

	taken, err := s.take()
	if err != nil {
		return taken, err
	}

	if s.to == nil {
		s.to, s.from = map[netip.Addr]netip.Addr{}, map[netip.Addr]netip.Addr{}
	}

	s.to[taken], s.from[h.announced] = h.announced, taken

	return taken, nil
}
