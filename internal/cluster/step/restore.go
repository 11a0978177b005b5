package step

import (
	"fmt"
	"time"
)

// Restore makes a control plane the first member of a new etcd with the data of a snapshot. Like [Bootstrap], it
// happens while no control plane has etcd data.
type Restore struct {
	plain

	Machine string
	// From is the snapshot, as messages name it.
	From string
}

// On names the machine.
func (s Restore) On() string { return s.Machine }

func (s Restore) String() string { return fmt.Sprintf("restore etcd on %s from %s", s.Machine, s.From) }

func (Restore) ends(m *MachineState, _ time.Time) { m.BootstrapRequested = true }

func (Restore) forecast(m Model) { m.BeginEtcd() }

// ChangesMembers is true.
func (Restore) ChangesMembers() bool { return true }

func (s Restore) sums(t *Total) { t.RestoredFrom = s.From }
