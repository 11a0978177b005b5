package step

import (
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/operation"
)

// Operate does a requested operation on a member.
type Operate struct {
	plain

	Machine string
	operation.Operation
	Evacuation
}

// On names the machine.
func (s Operate) On() string { return s.Machine }

func (s Operate) String() string { return s.Operation.On(s.Machine, s.Steps()) }

// Disrupts is true for a reboot.
func (s Operate) Disrupts() bool { return s.Reboots() }

// OneByOne is always true.
func (s Operate) OneByOne() bool { return true }

// Impact is that of a reboot, or of a wipe.
func (s Operate) Impact() Impact {
	return Impact{Drains: s.Drain, Reboots: s.Reboots(), Wipes: s.Kind == operation.Reset}
}

// ChangesEtcd reports whether the operation is one of the control planes.
func (s Operate) ChangesEtcd() bool { return s.OfControlPlanes() }

// Purpose is the operation.
func (s Operate) Purpose() string { return s.Machine + " " + string(s.Kind) }

func (s Operate) ends(m *MachineState, at time.Time) {
	m.Operated = true

	if s.Reboots() {
		m.reboot("it just rebooted", at)
	}
}

// ShowsInState is false.
func (Operate) ShowsInState() bool { return false }
