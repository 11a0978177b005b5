package cluster

import (
	"math"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// PlanRemoval decides how the machines in want.Removed leave a cluster whose other machines belong to other
// resources; want.Machines is empty. While the cluster lives on, they leave it in order, as [Plan] takes machines
// out. A machine with which the cluster ends (see [Ends]) is reset as in [PlanTeardown], because no cluster is left.
//
// Which of the two applies can change during the removal. When all machines of a cluster are removed at once, each by
// its own run, the control planes leave etcd one after the other until one is left. Workers that are late then find
// no API for a drain.
//
// A machine that another resource owns is left alone (see [OwnedByOther]). With Spec.Protected the end of the cluster
// is refused.
func PlanRemoval(want Spec, have Snapshot, p Policy) Decision {
	var refused Decision

	want = want.Ordered()

	if refuseNewOwners(want, have, &refused); len(refused.Refusals) > 0 {
		return refused
	}

	if want = want.withoutOthers(have); len(want.Removed) == 0 {
		return Decision{}
	}

	if held := holdUntilOwned(want, have, p); !held.Done() {
		return held
	}

	if held := holdRemoval(want, have, p); !held.Done() {
		return held
	}

	ends := Ends(want, have, p)

	if removed := want.removed(step.ControlPlane); want.Protected && len(removed) > 0 &&
		(ends || lostForGood(have, p)) && !neverBegan(want, have) {
		return Decision{Refusals: []step.Refusal{protectedEnd(removed[0], have)}}
	}

	if !ends {
		return Plan(want, have, p)
	}

	// The Node objects are deleted with the control plane.
	othersWiped := len(want.OtherControlPlanes) > 0 && othersGone(want, have)
	p.KeepNodes = othersWiped || len(want.removed(step.ControlPlane)) > 0
	want.Machines, want.Removed, want.order = want.Removed, nil, nil

	d := PlanTeardown(want, have, p)

	for i, op := range d.Steps {
		if reset, ok := op.(step.Reset); ok {
			reset.Shared = have.Kubernetes.Reachable
			d.Steps[i] = reset
		}
	}

	return d
}

// Ends reports whether a cluster ends with the machines in want.Removed, so that they are reset without leaving it
// first. The rule:
//
//   - Etcd has no other members: the last control plane goes.
//   - A Kubernetes API that answers has an etcd behind it, and a member list with other members proves one: the
//     cluster lives on.
//   - No control plane lists the members, and every other known control plane has no etcd data, or now belongs to
//     another resource: the others went first.
//   - Kubernetes was silent for Policy.DeadAfter, and none of the machines has etcd data: a worker, or a control
//     plane that never joined, has nothing that others could need. A control plane with data goes only where
//     Spec.Protected is false, because its vote may be missing when the others come back.
func Ends(want Spec, have Snapshot, p Policy) bool {
	if have.Etcd.Known && !OthersInEtcd(want, have) {
		return true
	}

	if have.Kubernetes.Reachable {
		return false
	}

	silent, empty := kubernetesSilent(have, p), withoutEtcdData(want, have)

	// Without known others, a machine with data is the last one only after a long silence.
	if !have.Etcd.Known && othersGone(want, have) && (silent || empty || len(want.OtherControlPlanes) > 0) {
		return true
	}

	return silent && empty || lostForGood(have, p) && !want.Protected
}

// lostForGood is true when neither etcd nor Kubernetes answered for long enough to give up a cluster that is off or
// has lost its quorum.
func lostForGood(have Snapshot, p Policy) bool {
	return !have.Etcd.Known && kubernetesSilent(have, p)
}

// neverBegan is true when no removed machine has etcd data or is a member.
func neverBegan(want Spec, have Snapshot) bool {
	return withoutEtcdData(want, have) && len(have.Etcd.Members) == 0
}

// protectedEnd refuses the end of a protected cluster.
func protectedEnd(m Machine, have Snapshot) step.Refusal {
	reason := "it is the last control plane, and removing it destroys the cluster and its etcd"
	if !have.Etcd.Known {
		reason = "etcd and the Kubernetes API do not respond, so removing it may destroy the " +
			"cluster" + Because(have.Etcd.Cause)
	}

	return step.Refusal{Machine: m.Name, Reason: reason,
		Remedy: "To replace it, first add another control plane. To destroy the cluster, set deletion_protection = " +
			"false on this resource and apply, then remove it"}
}

// OthersInEtcd reports whether etcd is known to have members that are not on removed machines.
func OthersInEtcd(want Spec, have Snapshot) bool {
	return slices.ContainsFunc(have.Etcd.Members, func(member etcdstate.Member) bool {
		return !slices.ContainsFunc(want.removed(step.ControlPlane), func(m Machine) bool {
			own, ok := memberOfRemoved(want, have, m)

			return ok && own.ID == member.ID
		})
	})
}

// othersGone is true when all other control planes are known and have no etcd data.
func othersGone(want Spec, have Snapshot) bool {
	return want.OtherControlPlanes != nil && !slices.ContainsFunc(want.OtherControlPlanes, func(m Machine) bool {
		s := have.Machines[m.Name]

		return s.Access != step.Foreign && mayHoldEtcd(s) != ""
	})
}

// withoutEtcdData is true when no removed machine has etcd data.
func withoutEtcdData(want Spec, have Snapshot) bool {
	return !slices.ContainsFunc(want.removed(step.ControlPlane),
		func(m Machine) bool { return mayHoldEtcd(have.Machines[m.Name]) != "" })
}

// ForecastRemoval lists the steps of [PlanRemoval] as far as a plan can know: in a cluster whose other control planes
// work, or that ends because it is known to have no others.
func ForecastRemoval(want Spec, recorded map[string]step.MachineState, p Policy) (steps []step.Step, last Decision) {
	const other = "another control plane"

	want = want.Ordered()

	have := Assume(want, recorded)

	if want.OtherControlPlanes == nil {
		have.Etcd.Members = append(have.Etcd.Members, etcdstate.Member{ID: other, Name: other})
		have.Kubernetes.Nodes = append(have.Kubernetes.Nodes, kubestate.Node{Name: other, Ready: true, ControlPlane: true})
		have.Peers = map[string]step.MachineState{other: {Access: step.Member, Stage: step.StageRunning, Ready: true}}
	}

	return forecast(want, have, p, math.MaxInt, func(s Snapshot) Decision { return PlanRemoval(want, s, p) })
}
