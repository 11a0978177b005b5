package step

// LeaveEtcd makes a control plane that is to be removed leave etcd. It deletes the machine's copy of the data.
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
		return "take control plane " + s.Machine + " out of etcd (drains it)"
	}

	return "take control plane " + s.Machine + " out of etcd"
}

// Disrupts is always true.
func (s LeaveEtcd) Disrupts() bool { return true }

// Impact is that of the drain.
func (s LeaveEtcd) Impact() Impact { return Impact{Drains: s.Drain} }
