package cluster

import (
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

// A machine that joined and waits in maintenance mode was wiped, or another machine answers at its address. Any
// machine can present the certificate of maintenance mode, and the configuration that it gets there has the keys of
// the cluster. So it must prove its identity, nothing may show that the machine which joined still works, and the
// plan must have shown it.

// joinedBefore reports whether the record has a node or a member of the machine.
func (m Machine) joinedBefore() bool { return m.NodeName != "" || m.MemberID != "" || m.Joined }

// Proven reports whether a machine in maintenance mode proves its identity: with the known hardware UUID, with the
// given fingerprint, or because the user permits it. A machine that never joined and has no known UUID needs no
// proof. UUIDs are compared elsewhere: another one is a [Mismatch].
func (m Machine) Proven(s step.MachineState) bool {
	switch {
	case m.Platform().Identified || m.Fingerprint != "" || m.Rejoin:
		return true
	case m.UUID != "":
		return s.UUID != ""
	default:
		return !m.joinedBefore()
	}
}

// UUIDToCompare is the hardware UUID that a machine must have when something is sent to it. Only [Machine.Proven]
// accepts one in maintenance mode that reports none.
func (m Machine) UUIDToCompare(s step.MachineState) string {
	if s.Access == step.Maintenance && s.UUID == "" {
		return ""
	}

	return m.UUID
}

// refuseReturned refuses to configure machines in maintenance mode that do not prove to be the ones that joined, or
// that were members when the plan was made.
func refuseReturned(want Spec, have Snapshot, p Policy, d *Decision) {
	for _, m := range want.all() {
		s := have.Machines[m.Name]

		switch {
		case m.Platform().Identified || s.Access != step.Maintenance || s.Busy != "" || m.isOther(s):
		case !m.InService && s.WasMember && !s.Started:
			d.refuse(m.Name, NotInstalled(m.Address, m.Installer), "The console of the machine shows the error. "+
				"Correct the image, its registry or the disk, and apply again")
		case m.InService || s.WasMember:
			d.refuse(m.Name, fmt.Sprintf("%s waits in maintenance mode, but was a member of the cluster", m.Address),
				returnFix(m))
		case m.Proven(s) || uuidMayCome(have, m, s, p):
		case m.UUID != "":
			d.refuse(m.Name, fmt.Sprintf("%s waits in maintenance mode and reports no hardware UUID, expected %s", m.Address,
				m.UUID), howToProve)
		default:
			d.refuse(m.Name, fmt.Sprintf("%s waits in maintenance mode, and it is not proven to be the machine that "+
				"joined, because its hardware UUID is unknown", m.Address), howToProve)
		}
	}
}

// NotInstalled describes a machine that is back in maintenance mode after it got its configuration. Talos reboots when
// an installation fails, and keeps no configuration (Talos 1.13, internal/app/machined/main.go handle).
func NotInstalled(address, installer string) string {
	image := ""
	if installer != "" {
		image = " " + installer
	}

	return fmt.Sprintf("%s got its configuration, did not start with it, and waits in maintenance mode again. Talos "+
		"reboots there when the installation fails, such as when it cannot pull the installer image%s", address, image)
}

// returnFix is what the user can do about a member that was wiped since the plan. Plans search for it at its former
// place.
func returnFix(m Machine) string {
	if m.PreviousAddress == "" || sameHost(m.PreviousAddress, m.Address) {
		return "Plan again: the plan says what is done to a machine that was wiped"
	}

	return "Whether it is the machine that was at " + m.PreviousAddress + " is unknown. " +
		"List what waits there under a name of its own, so that it joins, and take this one out of the configuration"
}

// howToProve is what the user can do about a machine without a proof.
const howToProve = "When you know that this machine was wiped, set its fingerprint to the " +
	"one on its console, or rejoin = true for this apply"

// uuidMayCome is true for a short while after a machine was first observed in maintenance mode: early in a boot its
// hardware is not read yet.
func uuidMayCome(have Snapshot, m Machine, s step.MachineState, p Policy) bool {
	return m.UUID != "" && !s.Since.IsZero() && have.Time.Sub(s.Since) <= p.HardwareTimeout
}

// notReturned says why a machine in maintenance mode is not, or not yet, known to be the one that joined; empty when
// it may be.
func notReturned(want Spec, have Snapshot, m Machine) string {
	if node, ok := formerNode(want, have, m); ok && node.Ready {
		return waitsBesideItsNode
	}

	if member, ok := formerMember(want, have, m); ok && m.Role == step.ControlPlane && leads(have, member) {
		return "waits in maintenance mode while its member " + member.NameOrID() + " leads etcd, so another machine may " +
			"have its address; continues after another member leads"
	}

	if !m.Proven(have.Machines[m.Name]) {
		return "waits in maintenance mode and does not report its hardware UUID yet"
	}

	return ""
}

// waitsBesideItsNode is the message about a machine in maintenance mode whose node works.
const waitsBesideItsNode = "waits in maintenance mode while its node is Ready, so another machine may have its " +
	"address; continues after the node is no longer Ready"

// leads reports whether any etcd member reports another one as its leader. Members report no more about the health of
// another one: each reports its own status (Talos 1.13, MachineService.EtcdStatus), and another machine may answer at
// the address of this one.
func leads(have Snapshot, member etcdstate.Member) bool {
	for _, view := range have.Etcd.Views {
		if view.Leader == member.ID && view.Member != member.ID {
			return true
		}
	}

	return false
}

// stillAtWork is true for a machine in maintenance mode whose node is Ready, although this run did not reset it.
func stillAtWork(want Spec, have Snapshot, m Machine) bool {
	s := have.Machines[m.Name]
	node, ok := nodeOfRemoved(want, have, m)

	return ok && node.Ready && have.Kubernetes.Reachable && !m.Platform().Identified &&
		s.Access == step.Maintenance && !s.Resetting
}
