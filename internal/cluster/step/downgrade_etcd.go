package step

import (
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

// DowngradeEtcd enables the downgrade of etcd's data to the previous minor version, which members of both versions
// read, and waits for the machine's member. Nothing restarts. An older Talos needs it first.
type DowngradeEtcd struct {
	plain

	Machine string
	// From and To are minor versions such as 3.7.
	From, To string
	// Shared is true when resources with other control planes may do it first.
	Shared bool
}

// On names the machine.
func (s DowngradeEtcd) On() string { return s.Machine }

func (s DowngradeEtcd) String() string {
	line := fmt.Sprintf("downgrade the etcd data: %s -> %s (through %s; no restart)", s.From, s.To, s.Machine)
	if s.Shared {
		line += ", unless another resource does it first"
	}

	return line
}

// OneByOne is always true.
func (s DowngradeEtcd) OneByOne() bool { return true }

// ChangesEtcd is true.
func (DowngradeEtcd) ChangesEtcd() bool { return true }

func (s DowngradeEtcd) forecast(m Model) { m.Etcd(func(e *etcdstate.State) { e.GoBack(s.To) }) }

// ShowsInState is false.
func (DowngradeEtcd) ShowsInState() bool { return false }
