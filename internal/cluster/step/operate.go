package step

import "github.com/talosop/terraform-provider-talosop/internal/operation"

// Operate does on a member what somebody asked for.
type Operate struct {
	Machine string
	operation.Operation
	Evacuation
}

// On names the machine.
func (s Operate) On() string { return s.Machine }

func (s Operate) String() string { return s.Operation.On(s.Machine, s.Drain) }

// Disrupts is true for a reboot.
func (s Operate) Disrupts() bool { return s.Reboots() }

// OneByOne is always true.
func (s Operate) OneByOne() bool { return true }

// Impact is that of a reboot.
func (s Operate) Impact() Impact { return Impact{Drains: s.Drain, Reboots: s.Reboots()} }
