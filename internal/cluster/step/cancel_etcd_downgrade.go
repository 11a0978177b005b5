package step

import (
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

// CancelEtcdDowngrade cancels a [DowngradeEtcd].
type CancelEtcdDowngrade struct {
	plain

	Machine string
	// To is the target version of the downgrade.
	To string
}

// On names the machine.
func (s CancelEtcdDowngrade) On() string { return s.Machine }

func (s CancelEtcdDowngrade) String() string {
	return fmt.Sprintf("cancel the etcd downgrade to %s (through %s; no restart)", s.To, s.Machine)
}

// OneByOne is always true.
func (s CancelEtcdDowngrade) OneByOne() bool { return true }

// ChangesEtcd is true.
func (CancelEtcdDowngrade) ChangesEtcd() bool { return true }

func (CancelEtcdDowngrade) forecast(m Model) { m.Etcd((*etcdstate.State).EndDowngrade) }

// ShowsInState is false.
func (CancelEtcdDowngrade) ShowsInState() bool { return false }
