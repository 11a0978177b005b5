package step

import "time"

// Bootstrap makes a control plane the first member of a new etcd. It happens once in the lifetime of a cluster.
type Bootstrap struct {
	plain

	Machine string
}

// On names the machine.
func (s Bootstrap) On() string { return s.Machine }

func (s Bootstrap) String() string { return "bootstrap etcd on " + s.Machine }

func (Bootstrap) ends(m *MachineState, _ time.Time) { m.BootstrapRequested = true }

func (Bootstrap) forecast(m Model) { m.BeginEtcd() }

// ChangesMembers is true.
func (Bootstrap) ChangesMembers() bool { return true }
