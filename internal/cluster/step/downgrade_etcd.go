package step

import (
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

// DowngradeEtcd tells etcd to take its data back to the minor version before, which the members of that one read, too,
// and waits until the machine's member did. Nothing restarts; it is what an older Talos needs first.
type DowngradeEtcd struct {
	plain

	Machine string
	// From and To are minor versions such as 3.7.
	From, To string
	// Shared is whether resources with other control planes may do it first.
	Shared bool
}

// On names the machine.
func (s DowngradeEtcd) On() string { return s.Machine }

func (s DowngradeEtcd) String() string {
	line := fmt.Sprintf("downgrade etcd: %s -> %s (its data, told to %s; no restart)", s.From, s.To, s.Machine)
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
