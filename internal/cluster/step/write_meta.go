package step

import (
	"fmt"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/metakey"
)

// WriteMeta writes values to a machine's META, the small store beside its system disk's boot partition that survives
// resets and upgrades. Nothing reboots; a network configuration takes effect at once.
type WriteMeta struct {
	plain

	Machine string
	// Keys that are written, such as "0x0a, 0x0c". The values may be private.
	Keys string
}

// On names the machine.
func (s WriteMeta) On() string { return s.Machine }

func (s WriteMeta) String() string {
	if s.ChangesNetwork() {
		return fmt.Sprintf("write META %s of %s (its network changes at once)", s.Keys, s.Machine)
	}

	return fmt.Sprintf("write META %s of %s", s.Keys, s.Machine)
}

// ChangesNetwork reports whether a network configuration is among the values.
func (s WriteMeta) ChangesNetwork() bool {
	return strings.Contains(s.Keys, metakey.Text(metakey.Network))
}

// OneByOne is true where the network changes.
func (s WriteMeta) OneByOne() bool { return s.ChangesNetwork() }

// Outdates is the machine alone.
func (WriteMeta) Outdates(Role) Reach { return ItsMachine }

func (WriteMeta) forecast(m Model) { m.WriteMeta() }

func (s WriteMeta) shows(f *Shown) {
	if strings.Contains(s.Keys, metakey.Text(metakey.UUIDOverride)) {
		f.Open = append(f.Open, FieldUUID)
	}
}
