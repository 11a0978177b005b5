package step

import (
	"fmt"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// ApplyConfig gives a machine its configuration. A machine in maintenance mode installs and joins by itself; a member
// gets it without a reboot.
type ApplyConfig struct {
	plain

	Machine string
	Address string
	Role    Role
	// Digest of the configuration.
	Digest string
	// Access is how the machine answers, and therefore how the configuration is sent.
	Access Access
	// Install is the disk that Talos installs to; empty where it does not.
	Install string
	// TalosVersion is installed, from the image Installer.
	TalosVersion, Installer string
	// Kubernetes is the version with which a machine joins, or which a member without images in its configuration keeps.
	// It is set while the cluster does not run the wanted one yet; otherwise empty.
	Kubernetes string
	// Reboot names the fields for which a member must reboot; empty when Talos applies the configuration at once.
	Reboot string
	// Staged names the fields for which the configuration waits for the next boot of a member; empty when it does not
	// wait.
	Staged string
	// Try keeps the configuration only when the machine answers under it.
	Try bool
	// Container is set for a machine that is a pod.
	Container bool
	// Keys are those in the configuration, and Moves describes the change of a member's keys.
	Keys  rotation.Keys
	Moves string
	// Evacuation before a reboot.
	Evacuation
}

// On names the machine.
func (s ApplyConfig) On() string { return s.Machine }

func (s ApplyConfig) String() string {
	moves := s.Moves
	if moves != "" {
		moves = ": " + moves
	}

	switch {
	case s.Access == Member && s.Reboot != "":
		return fmt.Sprintf("apply configuration to %s (%s for %s)%s", s.Machine, s.and(s.restart()), s.Reboot, moves)
	case s.Access == Member && s.Staged != "":
		return fmt.Sprintf("apply configuration to %s (at its next reboot, for %s)%s", s.Machine, s.Staged, moves)
	case s.Access == Member && s.Try:
		return fmt.Sprintf("apply configuration to %s (no reboot, tried first)%s", s.Machine, moves)
	case s.Access == Member:
		return fmt.Sprintf("apply configuration to %s (no reboot)%s", s.Machine, moves)
	}

	joins := "joins as " + s.Role.String()
	if s.Kubernetes != "" {
		joins += " with Kubernetes " + s.Kubernetes
	}

	if s.Container {
		return fmt.Sprintf("create pod of %s with Talos %s, apply configuration: %s", s.Machine, s.TalosVersion, joins)
	}

	if s.Install == "" {
		return fmt.Sprintf("apply configuration to %s: %s", s.Machine, joins)
	}

	return fmt.Sprintf("apply configuration to %s: installs Talos %s on %s, reboots, %s",
		s.Machine, s.TalosVersion, s.Install, joins)
}

// restart is how the machine restarts.
func (s ApplyConfig) restart() string {
	if s.Container {
		return "restart"
	}

	return "reboot"
}

// Disrupts is true for a reboot.
func (s ApplyConfig) Disrupts() bool { return s.Reboot != "" }

// OneByOne is true for control planes that are members.
func (s ApplyConfig) OneByOne() bool { return s.Access == Member && s.Role == ControlPlane }

// Impact is that of a reboot.
func (s ApplyConfig) Impact() Impact {
	if s.Access != Member || s.Reboot == "" {
		return Impact{}
	}

	return Impact{Drains: s.Drain, Reboots: true}
}

// Outdates is the machine alone for its first configuration, whose effects show later by themselves.
func (s ApplyConfig) Outdates(role Role) Reach {
	if s.Access != Member {
		return ItsMachine
	}

	return s.plain.Outdates(role)
}

// Purpose is the configuration for which it rebooted.
func (s ApplyConfig) Purpose() string {
	if s.Reboot == "" {
		return ""
	}

	return s.Machine + " configuration " + s.Digest
}

// The answer of a call that had its effect may be lost, so the stamps are kept from its beginning on.
func (s ApplyConfig) begins(m *MachineState) {
	m.FirstBoot = m.FirstBoot || s.Access != Member

	if s.Access == Member && s.Reboot+s.Staged == "" && !m.Keys.SamePods(s.Keys) {
		m.StampsBefore = m.StaticPods
	}
}

func (s ApplyConfig) ends(m *MachineState, at time.Time) {
	switch {
	case m.Access == Maintenance:
		m.unsee("it just left maintenance mode", at)
	case s.Staged != "":
		m.StagedDigest = s.Digest
	case s.Reboot != "":
		m.reboot("it just rebooted for its configuration", at)
	}
}

func (s ApplyConfig) forecast(m Model) { m.Configure(s) }

func (s ApplyConfig) shows(f *Shown) { f.Joins = f.Joins || s.Access != Member }

func (s ApplyConfig) sums(t *Total) {
	switch {
	case s.Access != Member:
		t.Joining = append(t.Joining, s.Machine)

		if s.Access == Maintenance {
			t.Installers[s.Machine] = s.Installer
		}

		if s.Access == Maintenance && s.Role == ControlPlane {
			t.JoiningEtcd++
		}
	case s.Reboot != "":
		t.takeDown(s.Machine, s.Drain)
	}
}
