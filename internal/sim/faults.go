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

// FailReadiness lets readiness checks of the machine's stand-in for kube-apiserver fail, such as kms-providers. It
// continues to serve, as a kube-apiserver does. Without checks it is ready again.
func (m *Machine) FailReadiness(checks ...string) {
	m.sim.world.Update(func() { m.unready = checks })
}
