package cluster

import (
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

// A machine that joined and waits in maintenance mode was wiped, or somebody else answers at its address. Anybody can
// show the certificate of maintenance mode, and what a machine is given there holds the keys of the cluster: so it has
// to prove who it is, nothing may say that the one which joined is at work, and the plan has to have shown it.

// joinedBefore reports whether the record knows a node or a member of the machine.
func (m Machine) joinedBefore() bool { return m.NodeName != "" || m.MemberID != "" || m.Joined }

// Proven reports whether a machine in maintenance mode shows that it is the one meant: with the hardware UUID that is
// known, with the fingerprint that is given, or because the user says so. Nobody asks that of one that never joined and
// of which no UUID is known. UUIDs are compared elsewhere: another one is a [Mismatch].
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

// hidesHardware is true where whoever waits in maintenance mode at the address of a machine does not show the hardware
// UUID that is known of it, and this run did not reset it: the machine may be at work elsewhere.
func (m Machine) hidesHardware(s step.MachineState) bool {
	return s.Access == step.Maintenance && !s.Resetting && m.UUID != "" && !m.Proven(s)
}

// UUIDToCompare is the hardware UUID that a machine has to have when something is sent to it. One that waits in
// maintenance mode and shows none is only let through by [Machine.Proven].
func (m Machine) UUIDToCompare(s step.MachineState) string {
	if s.Access == step.Maintenance && s.UUID == "" {
		return ""
	}

	return m.UUID
}

// refuseReturned refuses to configure machines in maintenance mode that are not proven to be the ones that joined, or
// that were members when the plan was made.
func refuseReturned(want Spec, have Snapshot, p Policy, d *Decision) {
	for _, m := range want.all() {
		s := have.Machines[m.Name]

		switch {
		case m.Platform().Identified || s.Access != step.Maintenance || s.Busy != "" || m.isOther(s):
		case m.InService || s.WasMember:
			d.refuse(m.Name, fmt.Sprintf("%s waits in maintenance mode, and was a member of the cluster until now", m.Address),
				wayBack(m))
		case m.Proven(s) || uuidMayCome(have, m, s, p):
		case m.UUID != "":
			d.refuse(m.Name, fmt.Sprintf("%s waits in maintenance mode and shows no hardware UUID, expected is %s", m.Address,
				m.UUID), howToProve)
		default:
			d.refuse(m.Name, fmt.Sprintf("%s waits in maintenance mode, and nothing proves that it is the machine that joined: "+
				"no hardware UUID is known of it", m.Address), howToProve)
		}
	}
}

// wayBack is what the user can do about a member that was wiped since the plan. Plans look for it where it was.
func wayBack(m Machine) string {
	if m.PreviousAddress == "" || sameHost(m.PreviousAddress, m.Address) {
		return "Nothing was sent to it. Plan again: the plan says what is done to a machine that was wiped"
	}

	return "Nothing was sent to it, and that it is the machine which was at " + m.PreviousAddress + " cannot be told. " +
		"List what waits there under a name of its own, so that it joins, and take this one out of the configuration"
}

// howToProve is what the user can do about a machine that is not proven.
const howToProve = "Nothing was sent to it. When you know that this machine was wiped, set its fingerprint to the " +
	"one on its console, or rejoin = true for this apply"

// uuidMayCome is true for a short while after a machine was first seen in maintenance mode: early in a boot its
// hardware is not read yet.
func uuidMayCome(have Snapshot, m Machine, s step.MachineState, p Policy) bool {
	return m.UUID != "" && !s.Since.IsZero() && have.Time.Sub(s.Since) <= p.HardwareTimeout
}

// notReturned says why a machine in maintenance mode cannot be the one that joined, or not be told from it yet; empty
// when it may be.
func notReturned(want Spec, have Snapshot, m Machine) string {
	if node, ok := formerNode(want, have, m); ok && node.Ready {
		return waitsBesideItsNode
	}

	if member, ok := formerMember(want, have, m); ok && m.Role == step.ControlPlane && leads(have, member) {
		return "waits in maintenance mode while its member " + member.NameOrID() + " leads etcd, so another machine may " +
			"have its address; goes on once another member leads"
	}

	if !m.Proven(have.Machines[m.Name]) {
		return "waits in maintenance mode and shows no hardware UUID yet"
	}

	return ""
}

// waitsBesideItsNode is said of a machine in maintenance mode whose node is at work.
const waitsBesideItsNode = "waits in maintenance mode while its node is Ready, so another machine may have its " +
	"address; goes on once the node is not Ready any more"

// leads reports whether any member of etcd takes another one for its leader. That is all that members know of the
// health of another one: each tells its own status (Talos 1.13, MachineService.EtcdStatus), and at the address of this
// one somebody else may answer.
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
