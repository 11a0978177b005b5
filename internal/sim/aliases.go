package sim

import (
	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

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

// EtcdAlarm is a kind of alarm that an etcd member raises.
type EtcdAlarm = etcd.Alarm

// The alarms of etcd. With EtcdNoSpace the whole cluster refuses writes, with
// EtcdCorrupt reads as well, until the alarm is disarmed.
const (
	EtcdNoSpace = etcd.NoSpace
	EtcdCorrupt = etcd.Corrupt
)
