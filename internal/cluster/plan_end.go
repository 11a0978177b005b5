package cluster

import "slices"

// PlanRemoval decides how the machines in want.Removed leave a cluster whose other
// machines belong to other resources; want.Machines is empty. While the cluster lives on
// they leave it in order, as [Plan] takes machines out. A machine with which the cluster
// ends (see [Ends]) is reset as [PlanTeardown] does it: there is nobody to leave.
//
// Which of the two it is can change while it goes on. When all machines of a cluster are
// removed at once, each by a run of its own, the control planes leave etcd one after the
// other until the last one finds itself alone, and workers that are late find no API to
// be drained through.
func PlanRemoval(want Spec, have Snapshot, p Policy) Decision {
	if !Ends(want, have, p) {
		return Plan(want, have, p)
	}

	// With the control plane the Node objects go, too.
	p.KeepNodes = len(want.removed(ControlPlane)) > 0
	want.Machines, want.Removed = want.Removed, nil

	d := PlanTeardown(want, have, p)

	for i, step := range d.Steps {
		if reset, ok := step.(Reset); ok {
			reset.Shared = have.Kubernetes.Reachable
			d.Steps[i] = reset
		}
	}

	return d
}

// Ends reports whether a cluster ends with the machines in want.Removed, so that they are
// reset without leaving it first. The rule:
//
//   - Etcd has no other members: the last control plane goes.
//   - An API of Kubernetes that answers has an etcd behind it, and a list of etcd that
//     names other members is proof of one: the cluster lives.
//   - Nobody lists the members, and every other control plane that is known holds no
//     data of etcd, or belongs to somebody else by now: the others went first.
//   - Kubernetes was silent for Policy.DeadAfter, and none of the machines holds data of
//     etcd: a worker, or a control plane that never joined, has nothing that others
//     could need. A control plane with data stays: its vote may be missing when the
//     others come back.
func Ends(want Spec, have Snapshot, p Policy) bool {
	if have.Etcd.Known && !othersInEtcd(want, have) {
		return true
	}

	if have.Kubernetes.Reachable {
		return false
	}

	silent := !have.Kubernetes.Since.IsZero() && have.Time.Sub(have.Kubernetes.Since) > p.DeadAfter

	empty := withoutEtcdData(want, have)

	// Where nobody is known beside it, a machine with data is only the last one once
	// nobody has answered for long enough.
	if !have.Etcd.Known && othersGone(want, have) && (silent || empty || len(want.OtherControlPlanes) > 0) {
		return true
	}

	return silent && empty
}

// othersInEtcd is true when etcd has members that are not removed.
func othersInEtcd(want Spec, have Snapshot) bool {
	return slices.ContainsFunc(have.Etcd.Members, func(member EtcdMember) bool {
		return !slices.ContainsFunc(want.removed(ControlPlane), func(m Machine) bool {
			own, ok := memberOfRemoved(want, have, m)

			return ok && own.ID == member.ID
		})
	})
}

// othersGone is true when all other control planes are known and hold no data of etcd.
func othersGone(want Spec, have Snapshot) bool {
	return want.OtherControlPlanes != nil && !slices.ContainsFunc(want.OtherControlPlanes, func(m Machine) bool {
		s := have.Machines[m.Name]

		return s.Access != Foreign && mayHoldEtcd(s) != ""
	})
}

// withoutEtcdData is true when no removed machine holds data of etcd.
func withoutEtcdData(want Spec, have Snapshot) bool {
	return !slices.ContainsFunc(want.removed(ControlPlane),
		func(m Machine) bool { return mayHoldEtcd(have.Machines[m.Name]) != "" })
}

// ForecastRemoval lists the steps of [PlanRemoval] in a cluster that lives on, as far as
// a plan can know: with other control planes that work.
func ForecastRemoval(want Spec, recorded map[string]MachineState, p Policy) (steps []Step, last Decision) {
	const other = "another control plane"

	want = want.ordered()

	have := Assume(want, recorded)
	have.Etcd.Members = append(have.Etcd.Members, EtcdMember{ID: other, Name: other})
	have.Kubernetes.Nodes = append(have.Kubernetes.Nodes, Node{Name: other, Ready: true, ControlPlane: true})
	have.Peers = map[string]MachineState{other: {Access: Member, Stage: StageRunning, Ready: true}}

	return forecast(want, have, func(s Snapshot) Decision { return PlanRemoval(want, s, p) })
}
