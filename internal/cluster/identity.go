package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/metakey"
)

// Which machine answers, and whether it is the right one. Every decision about identity is made here: the planner
// refuses by it, a removal spares others by it, and the recorded state leaves others out.

// MismatchKind is how the machine that answers differs from the wanted one.
type MismatchKind int

// The kinds of mismatches.
const (
	// OtherCluster answers without the secrets of this cluster.
	OtherCluster MismatchKind = iota
	// OtherHardware answers with another UUID than the known one.
	OtherHardware
	// OtherRole is a member of the cluster with another role than the wanted one.
	OtherRole
	// SameHardware answers under the names of several machines.
	SameHardware
)

// Mismatch is an answer from a machine that is not the wanted one.
type Mismatch struct {
	Kind    MismatchKind
	Machine Machine
	State   step.MachineState
	// Names are those of all machines with this answer; for SameHardware only.
	Names []string
	// Is is the name of the machine that answers; for OtherHardware only, and empty where it is not in the cluster.
	Is string
}

// String says what is wrong with the answer.
func (m Mismatch) String() string {
	switch m.Kind {
	case OtherHardware:
		if m.Is != "" {
			return fmt.Sprintf("%s is %s", m.Machine.Address, m.Is)
		}

		return fmt.Sprintf("responds as another machine: UUID %s, expected %s", m.State.UUID, m.Machine.UUID)
	case OtherRole:
		return fmt.Sprintf("responds as a %s, expected a %s", m.State.Role, m.Machine.Role)
	case SameHardware:
		last := len(m.Names) - 1

		return fmt.Sprintf("%s and %s are the same machine: UUID %s",
			strings.Join(m.Names[:last], ", "), m.Names[last], m.State.UUID)
	default:
		return "responds, but not as a machine of this cluster" + Because(m.State.Cause)
	}
}

// Mismatches lists the answers that are not from the wanted machines, at most one for each machine. SameHardware is
// reported in addition to others.
func Mismatches(want Spec, have Snapshot) []Mismatch {
	var found []Mismatch

	names := namesByUUID(want, have)

	for _, m := range slices.Concat(want.all(), want.Removed, want.OtherControlPlanes) {
		s := have.Machines[m.Name]

		switch {
		case s.Access == step.Foreign:
			found = append(found, Mismatch{Kind: OtherCluster, Machine: m, State: s})
		case m.isOther(s):
			found = append(found, Mismatch{Kind: OtherHardware, Machine: m, State: s, Is: want.nameOf(s.UUID)})
		case m.hasOtherRole(s):
			found = append(found, Mismatch{Kind: OtherRole, Machine: m, State: s})
		}

		if same := names[strings.ToLower(s.UUID)]; len(same) > 1 && slices.Contains(same, m.Name) {
			found = append(found, Mismatch{Kind: SameHardware, Machine: m, State: s, Names: same})
		}
	}

	return found
}

// nameOf is the machine that is known to have a UUID; empty for none, and where several have it.
func (s Spec) nameOf(uuid string) string {
	var names []string

	for _, m := range s.all() {
		if m.UUID != "" && m.MayReport(uuid) {
			names = append(names, m.Name)
		}
	}

	if len(names) != 1 {
		return ""
	}

	return names[0]
}

// namesByUUID lists the names under which each machine of the spec answers.
func namesByUUID(want Spec, have Snapshot) map[string][]string {
	names := map[string][]string{}

	for _, m := range want.all() {
		if s := have.Machines[m.Name]; s.UUID != "" {
			uuid := strings.ToLower(s.UUID)
			names[uuid] = append(names[uuid], m.Name)
		}
	}

	return names
}

// WithoutMismatches is the snapshot in which a machine that answers as another one is Foreign, and its other answers
// are dropped. A moved address, or replaced hardware behind it, must not put another UUID into the record: the
// machine there would become the wanted one. A machine with a known UUID is the one that has it, even if others have
// it too.
func (s Snapshot) WithoutMismatches(want Spec) Snapshot {
	machines := maps.Clone(s.Machines)

	for _, m := range Mismatches(want.Ordered(), s) {
		known := m.Kind == SameHardware && m.Machine.UUID != ""
		if m.State.Answers() && !known && machines[m.Machine.Name].Access != step.Foreign {
			machines[m.Machine.Name] = step.MachineState{Access: step.Foreign, Cause: m.String()}
		}
	}

	s.Machines = machines

	return s
}

// MayReport reports whether the machine may answer with a hardware UUID: the known one, or the one that META
// overrides it with.
func (m Machine) MayReport(uuid string) bool {
	override := m.Meta[metakey.UUIDOverride]

	return strings.EqualFold(m.UUID, uuid) || override != "" && strings.EqualFold(override, uuid)
}

// isOther is true for a machine that answers with the UUID of other hardware.
func (m Machine) isOther(s step.MachineState) bool {
	return m.UUID != "" && s.UUID != "" && !m.MayReport(s.UUID)
}

// isOtherNode is true for a member with another node than the recorded one, where no UUID identifies it.
func (m Machine) isOtherNode(s step.MachineState) bool {
	return s.Access == step.Member && !m.Platform().Identified && (m.UUID == "" || s.UUID == "") &&
		m.NodeName != "" && s.NodeName != "" && m.NodeName != s.NodeName
}

// hasOtherRole is true for a member of the cluster with another role than the wanted one.
func (m Machine) hasOtherRole(s step.MachineState) bool {
	return s.Access == step.Member && s.Role != "" && s.Role != m.Role
}

// refuseMismatches refuses to work while any address answers with the wrong identity. Nothing is sent to any machine
// then, because none of the addresses can be trusted.
func refuseMismatches(want Spec, have Snapshot, d *Decision) {
	wanted := want.all()

	for _, mismatch := range Mismatches(want, have) {
		m, s := mismatch.Machine, mismatch.State
		if !slices.ContainsFunc(wanted, func(w Machine) bool { return w.Name == m.Name }) {
			continue // the machine that answers for a leaving one is spared
		}

		switch mismatch.Kind {
		case OtherCluster:
			d.refuse(m.Name, fmt.Sprintf("not a machine of cluster %q: %s", want.Name, s.Cause),
				"Check the address and the secrets. Reset a machine of another cluster with the credentials of that cluster "+
					"before you use it here")
		case OtherHardware:
			found := fmt.Sprintf("%s responds as another machine: its UUID is %s, expected %s", m.Address, s.UUID, m.UUID)
			if mismatch.Is != "" {
				found = mismatch.String()
			}

			d.refuse(m.Name, found,
				"Correct the address, or the uuid if the hardware was exchanged on purpose")
		case OtherRole:
			d.refuse(m.Name, fmt.Sprintf("%s already runs as a %s, expected a %s", m.Address, s.Role, m.Role),
				"Talos cannot change the role of a machine in place: reset it first, or list it under its current role")
		case SameHardware:
			if i := slices.Index(mismatch.Names, m.Name); i > 0 {
				d.refuse(m.Name, fmt.Sprintf("it is the same machine as %s: both have the UUID %s",
					mismatch.Names[i-1], s.UUID),
					"List each machine once")
			}
		}
	}

	refuseRenames(want, have, d)
}

// refuseRenames refuses to remove a machine that is wanted under another name: it would be reset, which no rename
// intends.
func refuseRenames(want Spec, have Snapshot, d *Decision) {
	for _, r := range want.Removed {
		for _, m := range want.all() {
			if renamed(have, r, m) {
				d.refuse(m.Name, fmt.Sprintf("it is the machine %s, which this apply removes", r.Name),
					"Keep the name "+r.Name+" for it: under another name it would be reset and join again")
			}
		}
	}
}

// renamed reports whether a removed machine is a wanted one. Where a UUID is unknown, as for containers, the machine
// at the same address counts as the same one, unless it lost everything or has another node.
func renamed(have Snapshot, removed, m Machine) bool {
	s := have.Machines[m.Name]
	uuid := cmp.Or(s.UUID, m.UUID)

	switch {
	case removed.UUID != "" && uuid != "":
		return strings.EqualFold(removed.UUID, uuid)
	case !sameHost(removed.Address, m.Address), s.Access == step.Maintenance:
		return false
	case removed.NodeName != "" && s.NodeName != "":
		return removed.NodeName == s.NodeName
	default:
		return removed.UUID == uuid
	}
}

// memberOfRemoved finds the member of a removed machine: the recorded one, or the one with its name and address,
// unless a wanted machine took these over.
//
// A machine that left etcd and rebooted has joined again as another member (Talos 1.13). Where the machine itself does
// not answer, its address or its name alone may now belong to another one, and the member must have both.
func memberOfRemoved(want Spec, have Snapshot, m Machine) (etcdstate.Member, bool) {
	if member, ok := have.Etcd.Member(m.MemberID); ok {
		return member, !takenOver(want, have, m, member)
	}

	member, ok := have.MemberOf(m)

	switch {
	case m.MemberID != "" && !answersItself(want, have, m):
		member, ok = have.memberWith(func(e etcdstate.Member) bool {
			return m.NodeName != "" && e.Name == m.NodeName && (m.Platform().NamesNode || hasPeerAt(e, m.Address))
		})
	case answersAsOther(want, have, m):
		member, ok = have.memberWith(func(e etcdstate.Member) bool { return m.NodeName != "" && e.Name == m.NodeName })
	}

	for _, successor := range want.sorted(step.ControlPlane) {
		if theirs, has := have.MemberOf(successor); has && ok && theirs.ID == member.ID {
			return etcdstate.Member{}, false
		}
	}

	return member, ok
}

// takenOver is true for a member that runs on a wanted machine at the address of m.
func takenOver(want Spec, have Snapshot, m Machine, member etcdstate.Member) bool {
	return slices.ContainsFunc(want.sorted(step.ControlPlane), func(w Machine) bool {
		theirs, ok := have.MemberOf(w)

		return ok && theirs.ID == member.ID && have.Machines[w.Name].Access == step.Member && sameHost(w.Address, m.Address)
	})
}

// answersAsOther is true where another machine of the cluster answers at the address of a removed one: it reports
// that, or refuseRenames found the address to belong to another wanted machine.
func answersAsOther(want Spec, have Snapshot, m Machine) bool {
	s := have.Machines[m.Name]

	successor := slices.ContainsFunc(want.Machines, func(w Machine) bool { return sameHost(w.Address, m.Address) })

	return s.Access == step.Member && (successor || m.isOther(s) || m.hasOtherRole(s))
}

func answersItself(want Spec, have Snapshot, m Machine) bool {
	return have.Machines[m.Name].Access == step.Member && !answersAsOther(want, have, m)
}

// nodeOfRemoved finds the node of a removed machine by its current or recorded name. Its address counts only where no
// name is known and no other machine answers there. A node of a wanted machine never counts.
func nodeOfRemoved(want Spec, have Snapshot, m Machine) (kubestate.Node, bool) {
	name := have.Machines[m.Name].NodeName
	if !answersItself(want, have, m) {
		name = cmp.Or(m.NodeName, name)
	}

	if answersAsOther(want, have, m) && m.NodeName == "" {
		return kubestate.Node{}, false
	}

	node, ok := have.nodeNamed(name, m.Address)

	// The successor of a machine that ends belongs to another run, and may have its name already.
	if want.Ending && m.NodeName != "" && !slices.ContainsFunc(node.Addresses,
		func(a string) bool { return sameHost(a, m.Address) }) {
		return kubestate.Node{}, false
	}

	for _, successor := range want.all() {
		if have.Machines[successor.Name].Access != step.Member && !sameHost(successor.Address, m.Address) {
			continue
		}

		if theirs, has := have.NodeOf(successor); has && theirs.Name == node.Name {
			return kubestate.Node{}, false
		}
	}

	return node, ok
}
