package sim

import (
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// SetFault adds a fault to the machine. Faults do not survive ClearFaults, but do
// survive reboots.
func (m *Machine) SetFault(f fault.Fault) {
	m.sim.faults.Set(m.Name(), f)
}

// ClearFaults removes the machine's faults.
func (m *Machine) ClearFaults() {
	m.sim.faults.Clear(m.Name())
}
