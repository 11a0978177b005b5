package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// Every resource with machines has its own ID, and marks the nodes of its machines with it. Only a mark that a key of
// the cluster authenticates counts (KubernetesState.Owners), because a kubelet can write any annotation of its node.
//
// A resource that finds a working member takes it over. A resource that removes a machine of another resource leaves
// it alone, because the other one still wants it: the machine was renamed in the configuration, a second state has
// it, or create_before_destroy created its new object first. The plan reports it. A mark that contradicts the plan
// stops the run.

// anotherResource is an owner that is only known not to be this one.
const anotherResource = "another resource"

// planMarks marks the nodes of members without a mark of this resource, and records where a configuration waits for
// the next boot.
func planMarks(want Spec, have Snapshot, p Policy, d *Decision) {
	if want.Owner == "" {
		return
	}

	for _, m := range want.all() {
		node, registered := have.NodeOf(m)
		s := have.Machines[m.Name]

		if !registered || s.Access != step.Member || d.concerns(m.Name) {
			continue
		}

		if owner := have.Kubernetes.Owners[node.Name]; owner != want.Owner {
			_, unproven := have.Kubernetes.Unproven[node.Name]
			d.step(step.TakeOwnership{Machine: m.Name, Node: node.Name, From: owner, Unproven: unproven,
				Soaks: want.IsCanary(m) && !m.Locked && newRollout(want, have, p).othersFollow()})
		} else if waits := s.StagedDigest != ""; waits != node.Staged {
			d.step(step.NoteStaged{Machine: m.Name, Node: node.Name, Waits: waits})
		}
	}
}

// OwnedByOther reports whether a removed machine is left to another resource: that one took it in this process, or
// the plan knew its owner. See refuseNewOwners for marks that the plan did not know.
func OwnedByOther(have Snapshot, m Machine) bool {
	return have.Machines[m.Name].Claimed || m.OwnedByOther
}

// ownerOfRemoved is the owner in the mark on the node of a removed machine.
func ownerOfRemoved(want Spec, have Snapshot, m Machine) (owner string, marked bool) {
	name := have.Machines[m.Name].NodeName
	if node, registered := nodeOfRemoved(want, have, m); registered {
		name = node.Name
	}

	owner, marked = have.Kubernetes.Owners[cmp.Or(name, m.NodeName)]

	return owner, marked
}

// refuseNewOwners refuses to remove machines whose owner is another one than the plan knew. Leaving such a machine
// alone would report a removal that did not happen, and a reset would take it from its owner.
func refuseNewOwners(want Spec, have Snapshot, d *Decision) {
	if want.Ending {
		return
	}

	for _, m := range want.Removed {
		owner, marked := ownerOfRemoved(want, have, m)
		if !marked || have.Machines[m.Name].Claimed || (owner != want.Owner) == m.OwnedByOther {
			continue
		}

		reason := fmt.Sprintf("its node is marked with owner_id %q, but the plan assumed this resource (owner_id %q) as "+
			"the owner", owner, want.Owner)
		if m.OwnedByOther {
			reason = fmt.Sprintf("its node is marked with this resource (owner_id %q), but the plan assumed another owner",
				owner)
		}

		d.refuse(m.Name, reason, "Plan again, with a refresh: the new plan goes by the mark. A "+
			"machine of another resource is then only forgotten here; to remove it, remove it there")
	}
}

// withoutOthers skips removed machines that belong to another resource. Their control planes count like all that the
// resource does not own.
func (s Spec) withoutOthers(have Snapshot) Spec {
	var own, others []Machine

	for _, m := range s.Removed {
		switch {
		case !OwnedByOther(have, m):
			own = append(own, m)
		case m.Role == step.ControlPlane:
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

// withoutOthersOf is withoutOthers for a teardown, in which all machines of the spec leave.
func (s Spec) withoutOthersOf(have Snapshot) Spec {
	going := s.going().withoutOthers(have)

	s.Machines, s.OtherControlPlanes, s.order = going.Removed, going.OtherControlPlanes, nil

	return s.Ordered()
}

// going is the spec of a teardown as one that removes all its machines.
func (s Spec) going() Spec {
	s.Machines, s.Removed, s.order = nil, s.Machines, nil

	return s.Ordered()
}

// holdUntilOwned holds the removal of members until Kubernetes reports whether another resource owns them, but at
// most for [Policy.DeadAfter].
func holdUntilOwned(want Spec, have Snapshot, p Policy) Decision {
	var d Decision

	if want.Ending || have.Kubernetes.Owners != nil || kubernetesSilent(have, p) || !want.Bootstrapped {
		return d
	}

	for _, m := range slices.Concat(want.all(), want.Removed) {
		if have.Machines[m.Name].Access == step.Member {
			d.hold(m.Name,
				"is not reset until the Kubernetes API reports its owner, or does not respond for %s%s",
				p.DeadAfter, Because(have.Kubernetes.Cause))
		}
	}

	return d
}

// kubernetesSilent is true when Kubernetes has not answered for long enough to continue without it.
func kubernetesSilent(have Snapshot, p Policy) bool {
	return !have.Kubernetes.Reachable && !have.Kubernetes.Since.IsZero() &&
		have.Time.Sub(have.Kubernetes.Since) > p.DeadAfter
}
