package etcd

import (
	"net/netip"
	"sync"
)

// StandIns are addresses of the site at which real members of etcd listen for their peers. They replace announced
// addresses at which no process can listen.
type StandIns struct {
	Take func() (netip.Addr, error) // finds a free address

	mu   sync.Mutex
	to   map[netip.Addr]netip.Addr // what is announced
	from map[netip.Addr]netip.Addr // by what is announced
}

// Of returns the announced address of a stand-in.
func (s *StandIns) Of(standIn netip.Addr) (announced netip.Addr, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	announced, ok = s.to[standIn]

	return announced, ok
}

// standIn is where the peers of a machine's real member find it: always the same place for what it announces.
func (s *StandIns) standIn(h Host) (netip.Addr, error) {
	if h.Announced == h.Address {
		return h.Announced, nil
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	if known, ok := s.from[h.Announced]; ok {
		return known, nil
	}

	taken, err := s.Take()
	if err != nil {
		return taken, err
	}

	if s.to == nil {
		s.to, s.from = map[netip.Addr]netip.Addr{}, map[netip.Addr]netip.Addr{}
	}

	s.to[taken], s.from[h.Announced] = h.Announced, taken

	return taken, nil
}
