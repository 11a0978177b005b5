package sim

import "github.com/talosop/terraform-provider-talosop/internal/sim/fault"

// What tests say of calls and faults.
type (
	// Call is one RPC that reached a machine.
	Call = fault.Call
	// Fault makes calls to one machine go wrong.
	Fault = fault.Fault
	// Personality is which of its two API servers a machine was running at the time of a call.
	Personality = fault.Personality
)

// The two personalities of a machine.
const (
	Maintenance = fault.Maintenance
	Configured  = fault.Configured
)
