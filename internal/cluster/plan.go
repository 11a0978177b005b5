package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// Plan compares what is wanted with what was observed. It is pure: the same
// arguments give the same decision.
//
// The rules, in the order in which they are asked: who may be talked to at all
// (identity), what is left of machines that are gone, whose volumes are lost, which machines join, which nodes
// nobody runs any more, which are given back, what changes on machines that run, where and when etcd is
// bootstrapped, what META lacks, who leaves, how Kubernetes is upgraded, and what has to
// settle before the cluster counts as Ready.
func Plan(want Spec, have Snapshot, p Policy) Decision {
	d := Decision{named: map[string]bool{}}
	have = have.indexed()
	want = want.Ordered()

	if refuseNewOwners(want, have, &d); len(d.Refusals) > 0 {
		return Decision{Refusals: d.Refusals}
	}

	want = want.withoutOthers(have).withoutWaiting(have, p).withoutScaledIn(have)

	decide(want, have, p, &d)
	d.holdOutside(want, have)

	d.named = nil
	if len(d.Refusals) > 0 {
		d.Steps, d.Holds, d.Kept, d.Behind = nil, nil, nil, nil
	}

	return d
}

func decide(want Spec, have Snapshot, p Policy, d *Decision) {
	refuseMismatches(want, have, d)
	refuseReturned(want, have, p, d)
	refuseNewNodeNames(want, have, d)
	refuseSharedNodeNames(want, have, d)
	refuseLostEtcd(want, have, d)
	refuseLostQuorum(want, have, d)
	refuseRestore(want, have, p, d)
	refuseLiving(want, have, d)
	refuseUnconsented(want, have, d)
	refuseUpgrades(want, have, d)
	refuseOlderEtcd(want, have, d)
	refuseKubernetes(want, have, p, d)
	refuseLastRemoval(want, have, d)
	refuseLockedRemoval(want.Removed, d)

	awaitRolledBack(want, have, d)
	awaitAbsent(want, have, p, d)
	awaitDisks(want, have, p, d)

	if len(d.Refusals) > 0 || len(d.Holds) > 0 {
		return
	}

	holdWaiting(want, d)
	planDepartures(want, have, p, d)
	planVolumes(want, have, d)
	planJoins(want, have, p, d)
	planFormerNodes(want, have, d)
	holdBusyUnmanaged(want, have, d)
	d.GiveBack(want, have)
	planRegistrations(want, have, p, d)
	planMarks(want, have, d)
	planChanges(want, have, p, d)
	planBootstrap(want, have, p, d)
	planMeta(want, have, d)
	planRemovals(want, have, p, d)
	planKubernetes(want, have, p, d)
	holdUntilReady(want, have, d)
}

// holdUntilReady lists what is still on its way. Machines that something else
// already holds, or that are about to act, are not named twice.
func holdUntilReady(want Spec, have Snapshot, d *Decision) {
	if want.OwnsControlPlane() && len(d.Steps) == 0 && !have.Etcd.Known {
		d.hold("", "etcd does not answer yet%s%s", Because(have.Etcd.Cause), tooFewVoters(want, have))
	}

	for _, m := range want.all() {
		if d.concerns(m.Name) {
			continue
		}

		if reason := NotReady(want, have, m); reason != "" {
			d.hold(m.Name, "%s", reason)
		} else if at := have.Machines[m.Name].FoundAt; at != "" {
			// It works. But the next run would look for it at the new address alone.
			d.hold(m.Name, "answers at its former address %s only, not at %s", at, m.Address)
		}
	}
}

func (d *Decision) steps(machine string) bool {
	return slices.ContainsFunc(d.Steps, func(s step.Step) bool { return s.On() == machine })
}

func (d *Decision) concerns(machine string) bool {
	if d.named != nil {
		return d.named[machine]
	}

	return d.steps(machine) || slices.ContainsFunc(d.Holds, func(h step.Hold) bool { return h.Machine == machine })
}

// NotReady says what a machine that answers still lacks to count as a working
// part of its cluster; empty when it lacks nothing.
func NotReady(want Spec, have Snapshot, m Machine) string {
	s := have.Machines[m.Name]

	switch {
	case s.Access == step.Gone:
		return "has no pod"
	case s.Access != step.Member:
		return "is not a member of the cluster yet"
	}

	if s.goingDown() {
		return "is about to reboot"
	}

	if s.Stage != StageRunning {
		return fmt.Sprintf("is %s%s", s.Stage, Because(strings.Join(s.Unmet, ", ")))
	}

	if m.Role == step.ControlPlane {
		if reason := memberNotReady(have, m); reason != "" {
			return reason
		}
	}

	return nodeNotReady(want, have, m)
}

func memberNotReady(have Snapshot, m Machine) string {
	if !have.Etcd.Known {
		return "waits for etcd" + Because(have.Etcd.Cause)
	}

	member, ok := have.MemberOf(m)

	switch {
	case !ok:
		return "has not joined etcd yet"
	case member.Learner:
		return "is a learner in etcd, not promoted yet"
	default:
		return formerPeer(have, m, member)
	}
}

// nodeNotReady asks for the Kubernetes node and for Talos's own readiness. With
// no CNI both wait for a network that somebody else brings: the node has to be
// registered, and nodeReady is the one condition that may be unmet
// (Talos 1.13 checks time, network, services, staticPods and nodeReady).
func nodeNotReady(want Spec, have Snapshot, m Machine) string {
	s := have.Machines[m.Name]

	if !have.Kubernetes.Reachable {
		return "waits for the Kubernetes API" + Because(have.Kubernetes.Cause)
	}

	node, ok := have.NodeOf(m)
	if !ok {
		return "has not registered as a Kubernetes node yet"
	}

	if nodesBecomeReady(want, have) && !node.Ready {
		return fmt.Sprintf("its node %s is not Ready yet", node.Name)
	}

	if reason := unready(want, have, s); reason != "" {
		return reason
	}

	return staleStaticPod(s, node)
}

// staleStaticPod names a pod of the control plane that does not run with its present
// configuration yet. The kubelet takes a change up within twenty seconds, and until then
// the old pod is there and ready, so the readiness of the machine does not show it. Nor does what Talos wants in the
// moment after a configuration with other keys was sent.
func staleStaticPod(s MachineState, node kubestate.Node) string {
	for _, name := range slices.Sorted(maps.Keys(s.StaticPods)) {
		pod, exists := node.StaticPods[name]

		switch {
		case !exists:
			return "its " + name + " has not started yet"
		case pod.Stamp != s.StaticPods[name],
			name == string(kubenames.KubeAPIServer) && s.StampsBefore[name] == pod.Stamp:
			return "its " + name + " does not run with its new configuration yet"
		case !pod.Ready:
			return "its " + name + " is not ready"
		}
	}

	return ""
}

// unready says what a machine that runs lacks by its own account; empty when nothing, or
// only the network that Talos does not bring.
func unready(want Spec, have Snapshot, s MachineState) string {
	unmet := s.Unmet
	if !nodesBecomeReady(want, have) {
		unmet = slices.DeleteFunc(slices.Clone(unmet), func(c string) bool { return conditionName(c) == "nodeReady" })
	}

	if !s.Ready && len(unmet) > 0 {
		return "is running but not ready" + Because(strings.Join(unmet, ", "))
	}

	return ""
}

// nodesBecomeReady is true when a node that is not Ready lacks something: Talos brings a
// network, or somebody else brought one, which any node that is Ready proves.
func nodesBecomeReady(want Spec, have Snapshot) bool {
	return want.NodesBecomeReady || have.networked ||
		slices.ContainsFunc(have.Kubernetes.Nodes, func(n kubestate.Node) bool { return n.Ready })
}

// conditionName is the name in front of an unmet condition such as
// "nodeReady: node is not ready".
func conditionName(condition string) string {
	name, _, _ := strings.Cut(condition, ":")

	return name
}

// Because is a cause in brackets, to be put after what it explains; empty without one.
func Because(cause string) string {
	if cause == "" {
		return ""
	}

	return " (" + cause + ")"
}
