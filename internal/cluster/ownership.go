package cluster

import (
	"cmp"
	"slices"
)

// Every resource with machines has an id of its own, and marks the nodes of its machines with it. One that finds a
// working member takes it over; one that is told to remove a machine with the mark of another resource leaves it alone,
// since that other one still wants it: the machine was renamed in the configuration, is held by a second state, or is
// replaced by an object that was created first.

// anotherResource stands for an owner that is only known not to be this one.
const anotherResource = "another resource"

// planMarks marks the nodes of members that have no mark of this resource, and notes where a configuration waits for
// the next boot.
func planMarks(want Spec, have Snapshot, d *Decision) {
	if want.Owner == "" {
		return
	}

	for _, m := range want.all() {
		node, registered := have.NodeOf(m)
		s := have.Machines[m.Name]

		if !registered || s.Access != Member || d.concerns(m.Name) {
			continue
		}

		if owner := have.Kubernetes.Owners[node.Name]; owner != want.Owner {
			d.step(TakeOwnership{Machine: m.Name, Node: node.Name, From: owner})
		} else if waits := s.StagedDigest != ""; waits != node.Staged {
			d.step(NoteStaged{Machine: m.Name, Node: node.Name, Waits: waits})
		}
	}
}

// OwnedByOther reports whether another resource owns a machine that is to be removed: it took the machine in this
// process, or the machine's node has its mark. What state recorded counts where no mark was seen.
func OwnedByOther(want Spec, have Snapshot, m Machine) bool {
	if have.Machines[m.Name].Claimed {
		return true
	}

	name := have.Machines[m.Name].NodeName
	if node, registered := nodeOfRemoved(want, have, m); registered {
		name = node.Name
	}

	if owner, marked := have.Kubernetes.Owners[cmp.Or(name, m.NodeName)]; marked {
		return owner != want.Owner
	}

	return m.OwnedByOther
}

// withoutOthers leaves machines alone that are to be removed and belong to another resource. Their control planes
// count like all that the resource does not own.
func (s Spec) withoutOthers(have Snapshot) Spec {
	var own, others []Machine

	for _, m := range s.Removed {
		switch {
		case !OwnedByOther(s, have, m):
			own = append(own, m)
		case m.Role == ControlPlane:
			others = append(others, m)
		}
	}

	if len(own) == len(s.Removed) {
		return s
	}

	s.Removed, s.order = own, nil
	s.OtherControlPlanes = append(s.OtherControlPlanes[:len(s.OtherControlPlanes):len(s.OtherControlPlanes)], others...)

	return s.Ordered()
}

// withoutOthersOf is withoutOthers for a teardown, in which all machines of the spec go.
func (s Spec) withoutOthersOf(have Snapshot) Spec {
	going := s
	going.Machines, going.Removed, going.order = nil, s.Machines, nil
	going = going.Ordered().withoutOthers(have)

	s.Machines, s.OtherControlPlanes, s.order = going.Removed, going.OtherControlPlanes, nil

	return s.Ordered()
}

// holdUntilOwned holds the removal of members until Kubernetes has said whether another resource owns them, but not for
// longer than [Policy.DeadAfter].
func holdUntilOwned(want Spec, have Snapshot, p Policy) Decision {
	var d Decision

	if have.Kubernetes.Owners != nil || kubernetesSilent(have, p) || !want.Bootstrapped {
		return d
	}

	for _, m := range slices.Concat(want.all(), want.Removed) {
		if have.Machines[m.Name].Access == Member {
			d.hold(m.Name,
				"is not reset before the Kubernetes API says whether another resource owns it, or was silent for %s%s",
				p.DeadAfter, Because(have.Kubernetes.Cause))
		}
	}

	return d
}

// kubernetesSilent is true when Kubernetes has not answered for long enough to go on without it.
func kubernetesSilent(have Snapshot, p Policy) bool {
	return !have.Kubernetes.Reachable && !have.Kubernetes.Since.IsZero() &&
		have.Time.Sub(have.Kubernetes.Since) > p.DeadAfter
}
