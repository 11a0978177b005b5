package step

import (
	"fmt"
	"time"
)

// dataGoes is said of a pod that has all data of its machine.
const dataGoes = "its data goes with it"

// Upgrade installs another Talos on a machine, or the same with another schematic,
// and reboots it. The image is pulled before the node is cordoned and drained, and a
// leader of etcd hands over first.
//
// The pod of a container is replaced by one with the image, and with all else that is wanted
// of it. Its volumes stay, where it has any.
type Upgrade struct {
	plain

	Machine string
	Role    Role
	// From and To are versions; equal when only the schematic changes.
	From, To string
	// Schematic that is wanted; empty when it stays what it is.
	Schematic string
	// Installer is the image.
	Installer string
	// Reinstall is set when nothing changes but the image.
	Reinstall bool
	// Container is set for a machine that is a pod, and Replace when that is replaced for
	// something else than another version of Talos, with the reason.
	Container bool
	Replace   string
	// Loses is set when its data goes with the pod, so that the machine joins anew.
	Loses bool
	Evacuation
}

// On names the machine.
func (s Upgrade) On() string { return s.Machine }

func (s Upgrade) String() string {
	if s.Replace != "" {
		return fmt.Sprintf("replace pod of %s%s: %s", s.Machine, s.asides(), s.Replace)
	}

	how := s.and("reboot")

	switch {
	case s.Loses:
		how = s.and("replace pod, " + dataGoes)
	case s.Container:
		how = s.and("replace pod")
	}

	if s.Reinstall {
		return fmt.Sprintf("upgrade Talos on %s: image %s (%s)", s.Machine, s.Installer, how)
	}

	if s.From == s.To {
		return fmt.Sprintf("upgrade Talos on %s: schematic %s (%s)", s.Machine, ShortID(s.Schematic), how)
	}

	return fmt.Sprintf("upgrade Talos on %s: %s -> %s (%s)", s.Machine, s.From, s.To, how)
}

// asides is what the replacement of a pod comes with.
func (s Upgrade) asides() string {
	switch {
	case s.Loses:
		return " (" + s.and(dataGoes) + ")"
	case s.Drain:
		return " (drain)"
	default:
		return ""
	}
}

// Disrupts is always true.
func (s Upgrade) Disrupts() bool { return true }

// Impact depends on what the machine runs on, and on what becomes of its data.
func (s Upgrade) Impact() Impact {
	return Impact{
		Drains: s.Drain, Reboots: !s.Container, Upgrades: s.From != s.To || !s.Container, Wipes: s.Loses,
		ReplacesPod: s.Container,
	}
}

// ShortID shortens an id that is a hash, such as that of a schematic, to what tells two apart.
func ShortID(id string) string {
	const enough = 12
	if len(id) <= enough {
		return id
	}

	return id[:enough] + "…"
}

// Purpose is what it upgraded to.
func (s Upgrade) Purpose() string { return s.Machine + " upgrade " + s.To + " " + s.Schematic }

func (s Upgrade) begins(m *MachineState) { m.Upgraded = UpgradeMark{} }

// ends when a former pod is gone, so that whatever runs from then on is the outcome, even when the pod was right and
// stayed: it may be well at once, and no other boot is waited for. A blank pod that was replaced was in no service, so
// its reboot is not waited for.
func (s Upgrade) ends(m *MachineState, at time.Time) {
	boot, cause := m.BootID, "it just rebooted for its upgrade"
	if s.Container {
		boot, cause = neverStarted, "its pod was just replaced"
	}

	m.Upgraded = UpgradeMark{BootID: boot, Version: s.To, Schematic: s.Schematic}

	if m.Access != Maintenance {
		m.RebootedFrom = boot
	}

	m.unsee(cause, at)
}

// neverStarted stands for a boot that no machine answers from.
const neverStarted = "none"

func (s Upgrade) forecast(m Model) { m.Upgrade(s) }

// A pod is another one after it.
func (s Upgrade) shows(f *Shown) {
	f.Joins = f.Joins || s.Loses
	f.Texts[FieldTalosVersion] = s.To

	if s.Container {
		f.Open = append(f.Open, FieldUUID, FieldAddress)
	}
}

func (s Upgrade) sums(t *Total) {
	t.takeDown(s.Machine, s.Drain)
	t.Talos = pass(t.Talos, s.From, s.To)
	t.Installers[s.Machine] = s.Installer
}
