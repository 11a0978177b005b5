// Package operate decides when a requested operation runs on which machine, so that the cluster stays in service. It
// is pure.
package operate

import (
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/operation"
)

// Order is an operation and its machines, by their names in the spec.
type Order struct {
	operation.Operation

	Machines []string
}

// Plan decides the next step of an order, at most one new step at a time: control planes one by one, the leader of
// etcd last, then workers within the budget of their pool. Before a machine goes out of service, every other control
// plane must work, and etcd must keep its quorum without it. A control plane that loses the data of etcd leaves etcd
// first. It is done once the operation ran on every machine of the order, each works again, and its node is
// uncordoned.
func Plan(want cluster.Spec, have cluster.Snapshot, p cluster.Policy, asked Order) cluster.Decision {
	var d cluster.Decision

	if d.Refusals = refusals(want, have, asked); len(d.Refusals) > 0 {
		return d
	}

	d.GiveBack(want, have)

	for _, m := range inOrder(want, have, asked) {
		s := have.Machines[m.Name]
		reason := cluster.NotReady(want, have, m)

		switch {
		case s.Busy != "":
			hold(&d, m, s.Busy)
		case s.Operated && s.Unwiped != "":
			d.Refusals = append(d.Refusals, unwiped(m, s))
		case s.Operated && reason == "":
			continue
		case s.Operated:
			hold(&d, m, "it "+reason)
		default:
			next(want, have, p, m, asked, &d)
		}

		// Workers share a budget; control planes go one by one.
		if m.Role == step.ControlPlane || len(d.Steps) > 0 {
			break
		}
	}

	return d
}

// unwiped ends an order whose wipe failed on a machine.
func unwiped(m cluster.Machine, s step.MachineState) step.Refusal {
	return step.Refusal{Machine: m.Name,
		Reason: "the wipe of " + s.Unwiped + " failed: Talos rebooted, and their content is the same as before",
		Remedy: "See the log of the reset on the console of the machine, or where its logs are sent. Repair or replace a " +
			"disk with errors"}
}

// next does the operation on a machine, unless that has to wait.
func next(
	want cluster.Spec, have cluster.Snapshot, p cluster.Policy, m cluster.Machine, asked Order, d *cluster.Decision,
) {
	if have.Machines[m.Name].Access != step.Member {
		hold(d, m, "does not respond"+cluster.Because(have.Machines[m.Name].Cause))

		return
	}

	if m.Role == step.ControlPlane && asked.LosesEtcd() && !d.TakeOutOfEtcd(want, have, m, p) {
		return
	}

	step := step.Operate{Machine: m.Name, Operation: asked.Operation}
	if asked.Reboots() {
		step.Evacuation = cluster.EvacuationOf(have, m, p)
	}

	if reason := cluster.Preflight(want, have, p, step); reason != "" {
		hold(d, m, "has to wait: "+reason)

		return
	}

	d.Steps = append(d.Steps, step)
}

func hold(d *cluster.Decision, m cluster.Machine, reason string) {
	d.Holds = append(d.Holds, step.Hold{Machine: m.Name, Reason: reason})
}

// inOrder are the machines of an order in the sequence of the operation.
func inOrder(want cluster.Spec, have cluster.Snapshot, asked Order) []cluster.Machine {
	var planes, leader, workers []cluster.Machine

	for _, m := range want.Machines {
		switch {
		case !slices.Contains(asked.Machines, m.Name):
		case m.Role != step.ControlPlane:
			workers = append(workers, m)
		case have.Leads(m):
			leader = append(leader, m)
		default:
			planes = append(planes, m)
		}
	}

	return slices.Concat(planes, leader, workers)
}

// refusals are the machines on which it can never run.
func refusals(want cluster.Spec, have cluster.Snapshot, asked Order) []step.Refusal {
	var refused []step.Refusal

	for _, m := range want.Machines {
		if !slices.Contains(asked.Machines, m.Name) {
			continue
		}

		switch access := have.Machines[m.Name].Access; {
		case asked.OfControlPlanes() && m.Role != step.ControlPlane:
			refused = append(refused, step.Refusal{Machine: m.Name, Reason: "it is a worker",
				Remedy: "Name control planes only"})
		case asked.LosesEtcd() && m.Role == step.ControlPlane && isOnlyMember(want, have, m):
			refused = append(refused, step.Refusal{Machine: m.Name,
				Reason: "it is the last etcd member, so the cluster would end",
				Remedy: "Add another control plane first, or restore the cluster from an etcd snapshot"})
		case access == step.Maintenance, access == step.Foreign:
			refused = append(refused, step.Refusal{Machine: m.Name,
				Reason: "it does not respond as a machine of this cluster" + cluster.Because(have.Machines[m.Name].Cause),
				Remedy: "Repair it first, or remove it from the list"})
		}
	}

	return refused
}

// isOnlyMember is true for the control plane that alone has the data of etcd. While etcd does not respond, the spec
// decides.
func isOnlyMember(want cluster.Spec, have cluster.Snapshot, m cluster.Machine) bool {
	if !have.Etcd.Known {
		return len(cluster.OfRole(want.Machines, step.ControlPlane))+len(want.OtherControlPlanes) == 1
	}

	_, member := have.MemberOf(m)

	return member && len(have.Etcd.Members) == 1
}
