package sim

import (
	"net/netip"
	"slices"
)

// AdmitOnly has the machine's configured Talos API take connections of some machines alone from now on, as one behind
// a firewall does; in maintenance mode everybody is let in. Connections that are there stay.
func (m *Machine) AdmitOnly(machines ...*Machine) {
	m.World.Lock()
	defer m.World.Unlock()

	m.admitted = slices.Clone(machines)
}

func (m *Machine) admits(client netip.Addr) bool {
	m.World.Lock()
	defer m.World.Unlock()

	return m.admitted == nil ||
		slices.ContainsFunc(m.admitted, func(other *Machine) bool { return other.Address() == client })
}
