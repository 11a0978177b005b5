package cluster

import (
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// refuseLostEtcd refuses to continue when none of the machines has the recorded etcd any more. Only a restore, when
// requested, can bring its data back; a second bootstrap would create an empty cluster instead. While control planes
// of other resources work, nothing is lost.
func refuseLostEtcd(want Spec, have Snapshot, d *Decision) {
	if !want.Bootstrapped || !want.OwnsBootstrap() || want.RestoreFrom != "" || len(OtherNodesAtWork(want, have)) > 0 {
		return
	}

	for _, m := range want.everyControlPlane() {
		// A busy machine is not observed: it may have joined etcd since.
		if s := have.Machines[m.Name]; s.Busy != "" || !withoutData(s) && !removedAndGone(want, m, s) {
			return
		}
	}

	d.refuse("", "no control plane has etcd data, but this cluster was bootstrapped before",
		"Its data cannot come back by bootstrapping again. Set restore_from to a snapshot of it that was not "+
			"restored before, or destroy the resource and recreate the cluster")
}

// withoutData is true for a control plane without etcd data that this run did not ask to bootstrap.
func withoutData(s step.MachineState) bool {
	return s.WithoutEtcd() && (s.Access == step.Maintenance || !s.BootstrapSent)
}

// OtherNodesAtWork are the ready nodes of [OtherNodes].
func OtherNodesAtWork(want Spec, have Snapshot) []kubestate.Node {
	return slices.DeleteFunc(OtherNodes(want, have), func(node kubestate.Node) bool { return !node.Ready })
}

// OtherNodes are the control plane nodes outside the spec, from a Kubernetes API that answers.
func OtherNodes(want Spec, have Snapshot) []kubestate.Node {
	if !have.Kubernetes.Reachable {
		return nil
	}

	own := nodesOf(want.Known(), have)

	return slices.DeleteFunc(slices.Clone(have.Kubernetes.Nodes),
		func(node kubestate.Node) bool { return !node.ControlPlane || own[node.Name] })
}

// refuseRestore refuses to restore a snapshot into a running cluster, which would ignore it, although the user wants
// the old data. An etcd that was restored from a snapshot, other than the recorded one, comes from an interrupted
// run. An etcd that is about to begin does not report that yet, while another machine may already have joined it. Nor
// does one that is silent for no longer than a boot takes.
func refuseRestore(want Spec, have Snapshot, p Policy, d *Decision) {
	if want.RestoreFrom == "" || !want.OwnsBootstrap() {
		return
	}

	var holder, silent string

	for _, m := range want.everyControlPlane() {
		s := have.Machines[m.Name]
		_, member := have.MemberOf(m)

		switch {
		case newlyRestored(want, s), s.BootstrapRequested:
			return
		case s.Access == step.Unreachable && !s.Since.IsZero() && have.Time.Sub(s.Since) <= p.BootTimeout:
			silent = m.Name
		case holder == "" && s.Access == step.Member && (member || s.EtcdService.ProvesData()):
			holder = m.Name
		}
	}

	switch {
	case holder == "":
	case silent != "":
		d.hold(silent, "does not respond, and its etcd may have started with %s", want.RestoreFrom)
	default:
		d.refuse(holder, "it has the data of a running etcd, so "+want.RestoreFrom+" is not restored",
			"Remove restore_from, or set it to the value of restored_from. To restore anyway, which loses "+
				"all writes since the snapshot, first reset every control plane with talosctl reset")
	}
}

// planBootstrap decides where etcd begins, from a snapshot where that is wanted, and makes sure that it begins only
// once.
//
// Talos does not prevent a second bootstrap on another control plane, which makes a second cluster (Talos 1.13,
// Bootstrap checks its own data directory only). So etcd begins only when every other control plane is known to have
// no etcd data: it reports so itself, or this run observed it in maintenance mode. A control plane that is silent
// since then may have been bootstrapped by another run. Those of other resources count too, and nodes in Kubernetes
// prove an unlisted etcd.
func planBootstrap(want Spec, have Snapshot, p Policy, d *Decision) {
	if !want.OwnsBootstrap() || want.Bootstrapped && want.RestoreFrom == "" || len(have.Etcd.Members) > 0 ||
		etcdBeginning(want.everyControlPlane(), have) {
		return
	}

	if reason := etcdElsewhere(have); reason != "" {
		d.hold("", "%s, so machines join that etcd and no bootstrap runs", reason)

		return
	}

	for _, m := range want.everyControlPlane() {
		reason := mayHoldEtcd(have.Machines[m.Name])
		if s := have.Machines[m.Name]; s.Access == step.Gone && !removedAndGone(want, m, s) {
			reason = podMissing // it is created before anything else, and reports its data itself
		}

		if reason != "" {
			d.holdOnce(m.Name, reason, "it may already have etcd data, so no other machine is bootstrapped")

			return
		}
	}

	for _, m := range asked(want.sorted(step.ControlPlane), have) {
		s := have.Machines[m.Name]

		switch {
		case s.Busy != "":
			return // it is already held, and no other machine may begin
		case readyForBootstrap(s):
			if !d.concerns(m.Name) {
				d.step(beginEtcd(want, m))
			}

			return
		case s.BootstrapSent || have.Time.Sub(s.Since) <= p.BootTimeout:
			d.holdOnce(m.Name, stageOf(s), "the bootstrap of etcd waits for it")

			return
		}
	}
}

// etcdElsewhere names the proof of an etcd that none of the machines showed; empty without one.
func etcdElsewhere(have Snapshot) string {
	switch {
	case len(have.Kubernetes.Nodes) > 0:
		return "Kubernetes already has nodes"
	case have.Founder != "":
		return "another resource bootstraps etcd on " + have.Founder
	default:
		return ""
	}
}

// begunElsewhere says why etcd must no longer begin on a machine: since the decision, it has or may have begun on
// another control plane.
func begunElsewhere(want Spec, have Snapshot, m Machine) string {
	if len(have.Etcd.Members) > 0 {
		return "etcd already has members"
	}

	for _, other := range want.everyControlPlane() {
		s := have.Machines[other.Name]

		switch reason := mayHoldEtcd(s); {
		case other.Name == m.Name:
		case s.Access == step.Member && s.BootstrapRequested:
			return "etcd was bootstrapped on " + other.Name
		case reason != "":
			return other.Name + " may have etcd data: " + reason
		}
	}

	return etcdElsewhere(have)
}

// AwaitsRestore reports whether etcd has not yet begun from the wanted snapshot.
func AwaitsRestore(want Spec, have Snapshot) bool {
	if want.RestoreFrom == "" || !want.OwnsBootstrap() || len(have.Etcd.Members) > 0 ||
		etcdBeginning(want.everyControlPlane(), have) {
		return false
	}

	return !slices.ContainsFunc(want.everyControlPlane(),
		func(m Machine) bool { return newlyRestored(want, have.Machines[m.Name]) })
}

// newlyRestored is true for a machine whose etcd began from a snapshot that is not recorded yet.
func newlyRestored(want Spec, s step.MachineState) bool {
	return s.BootstrapSent || !s.RestoredAt.IsZero() && !s.RestoredAt.Equal(want.RestoredAt)
}

// beginEtcd is the step with which etcd begins on a machine.
func beginEtcd(want Spec, m Machine) step.Step {
	if want.RestoreFrom != "" {
		return step.Restore{Machine: m.Name, From: want.RestoreFrom}
	}

	return step.Bootstrap{Machine: m.Name}
}

// asked is the one machine that this run already asked to bootstrap, or is about to ask; otherwise all of them. The
// result of a call with a lost answer is unknown. So it is repeated only on the same machine, which knows whether it
// accepted the first one.
func asked(machines []Machine, have Snapshot) []Machine {
	for _, m := range machines {
		if s := have.Machines[m.Name]; s.BootstrapSent || s.BeginsEtcd {
			return []Machine{m}
		}
	}

	return machines
}

// etcdBeginning reports whether any control plane already has an etcd, or was asked to bootstrap one.
func etcdBeginning(machines []Machine, have Snapshot) bool {
	for _, m := range machines {
		s := have.Machines[m.Name]

		if s.Access == step.Member && (s.BootstrapRequested || s.EtcdService == step.ServiceRunning) {
			return true
		}
	}

	return false
}

// mayHoldEtcd says why a control plane may have etcd data; empty when it cannot.
func mayHoldEtcd(s step.MachineState) string {
	switch {
	case s.Access == step.Maintenance, s.Access == step.Gone, readyForBootstrap(s):
		return ""
	case s.Access == step.Member && s.EtcdService.ProvesData():
		return "its etcd is " + string(s.EtcdService)
	case s.Fresh, s.BootstrapSent:
		return ""
	case s.Access == step.Member && s.EtcdService == "":
		return "the state of its etcd is unknown"
	case s.Access == step.Member:
		return "its etcd is " + string(s.EtcdService)
	default:
		return "it does not respond" + Because(s.Cause)
	}
}

// readyForBootstrap is true for a configured control plane whose etcd waits to be bootstrapped or to join. The
// machine stays in stage booting until then (Talos 1.13).
func readyForBootstrap(s step.MachineState) bool {
	return s.Access == step.Member && s.Busy == "" && s.EtcdService.WithoutData() && !s.BootstrapRequested &&
		(s.Stage == step.StageBooting || s.Stage == step.StageRunning)
}

func stageOf(s step.MachineState) string {
	if s.Access == step.Member && s.Stage != "" {
		return "is " + string(s.Stage) + Because(s.Cause)
	}

	if s.Access == step.Maintenance {
		return "is in maintenance mode"
	}

	return "does not respond yet" + Because(s.Cause)
}

// holdOnce adds a hold, or only the consequence if the machine is already held for the reason.
func (d *Decision) holdOnce(machine, reason, consequence string) {
	for i := range d.Holds {
		if d.Holds[i].Machine == machine {
			d.Holds[i].Reason += "; " + consequence

			return
		}
	}

	if !d.concerns(machine) {
		d.hold(machine, "%s; %s", reason, consequence)
	}
}
