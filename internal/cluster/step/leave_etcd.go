package step

import "fmt"

// LeaveEtcd makes a control plane that will be removed leave etcd. It deletes the machine's copy of the data.
type LeaveEtcd struct {
	plain

	Machine string
	// Member is the ID of its member.
	Member string
	Evacuation
}

// On names the machine.
func (s LeaveEtcd) On() string { return s.Machine }

func (s LeaveEtcd) String() string {
	if s.Drain {
		return fmt.Sprintf("remove control plane %s from etcd (%s)", s.Machine, s.does())
	}

	return "remove control plane " + s.Machine + " from etcd"
}

// Disrupts is always true.
func (s LeaveEtcd) Disrupts() bool { return true }

// Impact is that of the drain.
func (s LeaveEtcd) Impact() Impact { return Impact{Drains: s.Drain} }

func (s LeaveEtcd) forecast(m Model) {
	m.Change(func(state *MachineState) { state.EtcdService, state.MemberID = ServiceFinished, "" })
	m.RemoveMember(s.Member)
	m.Cordon(s.Node, true)
}

// ShowsInState is false.
func (LeaveEtcd) ShowsInState() bool { return false }

// ChangesMembers is true.
func (LeaveEtcd) ChangesMembers() bool { return true }

// TakesOut is true.
func (LeaveEtcd) TakesOut() bool { return true }

func (s LeaveEtcd) sums(t *Total) {
	t.LeavingEtcd = append(t.LeavingEtcd, s.Machine)

	if s.Drain {
		t.Emptied = append(t.Emptied, s.Machine)
	}
}
