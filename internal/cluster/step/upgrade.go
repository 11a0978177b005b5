package step

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// dataGoes is the message about a pod that has all data of its machine.
const dataGoes = "its data goes with it"

// Upgrade installs another Talos on a machine, or the same with another schematic, and reboots it. The image is
// pulled before the node is cordoned and drained, and an etcd leader transfers its leadership first.
//
// The pod of a container is replaced by the wanted one with the image. Its volumes stay, if it has any.
type Upgrade struct {
	plain

	Machine string
	Role    Role
	// From and To are versions; equal when only the schematic changes.
	From, To string
	// Schematic that is wanted; empty when it does not change.
	Schematic string
	// Installer is the image.
	Installer string
	// Extensions are the system extensions that come and go, see [ExtensionChange]; empty when none does, or when those of
	// the image are unknown.
	Extensions string
	// Reinstall is set when only the image changes.
	Reinstall bool
	// Container is set for a machine that is a pod. Replace is the reason when that pod is replaced for something else
	// than another Talos version.
	Container bool
	Replace   string
	// Loses is set when its data is lost with the pod, so that the machine joins again.
	Loses bool
	Evacuation
}

// On names the machine.
func (s Upgrade) On() string { return s.Machine }

func (s Upgrade) String() string {
	if s.Replace != "" {
		return fmt.Sprintf("replace pod of %s%s: %s", s.Machine, s.sideEffects(), s.Replace)
	}

	how := s.and("reboot")

	switch {
	case s.Loses:
		how = s.and("replace pod, " + dataGoes)
	case s.Container:
		how = s.and("replace pod")
	}

	return fmt.Sprintf("upgrade Talos on %s: %s (%s)", s.Machine, s.what(), how)
}

// what is what changes.
func (s Upgrade) what() string {
	what := s.From + " -> " + s.To

	switch {
	case s.Reinstall:
		what = "image " + s.Installer
	case s.From == s.To:
		what = "schematic " + ShortID(s.Schematic)
	}

	if s.Extensions != "" {
		what += ", extensions: " + s.Extensions
	}

	return what
}

// ExtensionChange lists the system extensions that come and go, such as "+ qemu-guest-agent, - gvisor".
func ExtensionChange(running, wanted []string) string {
	var change []string

	for _, side := range []struct {
		mark         string
		names, other []string
	}{{"+ ", wanted, running}, {"- ", running, wanted}} {
		for _, name := range slices.Sorted(slices.Values(side.names)) {
			if !slices.Contains(side.other, name) {
				change = append(change, side.mark+name)
			}
		}
	}

	return strings.Join(slices.Compact(change), ", ")
}

// sideEffects are the side effects of replacing a pod.
func (s Upgrade) sideEffects() string {
	switch {
	case s.Loses:
		return " (" + s.and(dataGoes) + ")"
	case s.Drain:
		return " (" + s.Steps() + ")"
	default:
		return ""
	}
}

// Disrupts is always true.
func (s Upgrade) Disrupts() bool { return true }

// Impact depends on what the machine runs on, and on what happens to its data.
func (s Upgrade) Impact() Impact {
	return Impact{
		Drains: s.Drain, Reboots: !s.Container, Upgrades: s.From != s.To || !s.Container, Wipes: s.Loses,
		ReplacesPod: s.Container,
	}
}

// ShortID shortens an ID that is a hash, such as that of a schematic, to what distinguishes two.
func ShortID(id string) string {
	const enough = 12
	if len(id) <= enough {
		return id
	}

	return id[:enough] + "…"
}

// Purpose is the target of the upgrade.
func (s Upgrade) Purpose() string { return s.Machine + " upgrade " + s.To + " " + s.Schematic }

func (s Upgrade) begins(m *MachineState) { m.Upgraded = UpgradeMark{} }

// ends runs for a pod when the former one is gone, so that what runs from then on is the result. That also holds when
// the pod was right and stayed: it may work at once, and no other boot is waited for. A replaced blank pod was not in
// service, so its reboot is not waited for.
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

// neverStarted stands for a boot from which no machine answers.
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

// The loss of data has a line for each machine.
func (s Upgrade) on(machines string) Step {
	if s.Loses {
		return nil
	}

	s.Machine = machines

	return s
}
