package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// podMissing is what a wanted container lacks that does not exist on the host cluster. It is created before anything
// is planned, so it never counts as a machine without data.
const podMissing = "its pod does not exist"

// NotReady says what a machine that answers still lacks to count as a working part of its cluster; empty when it
// lacks nothing.
func NotReady(want Spec, have Snapshot, m Machine) string {
	s := have.Machines[m.Name]

	switch {
	case s.Access == step.Gone:
		return "has no pod"
	case s.Access == step.Unreachable:
		return "does not respond"
	case s.Access != step.Member:
		return "is not a member of the cluster yet"
	}

	if s.GoingDown() {
		return "is about to reboot"
	}

	if s.Stage != step.StageRunning {
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

// nodeNotReady checks the Kubernetes node and Talos's own readiness. Without a CNI both wait for a network from
// another tool: the node must be registered, and nodeReady is the one condition that may be unmet (Talos 1.13 checks
// time, network, services, staticPods and nodeReady).
func nodeNotReady(want Spec, have Snapshot, m Machine) string {
	s := have.Machines[m.Name]

	if !have.Kubernetes.Reachable {
		return "waits for the Kubernetes API" + Because(have.Kubernetes.Cause)
	}

	node, ok := have.NodeOf(m)
	if !ok {
		return "is not registered as a Kubernetes node yet"
	}

	if nodesBecomeReady(want, have) && !node.Ready {
		return fmt.Sprintf("its node %s is not Ready yet", node.Name)
	}

	if reason := unready(want, have, s); reason != "" {
		return reason
	}

	return staleStaticPod(s, node)
}

// unready says what a running machine lacks by its own report; empty when nothing, or only the network that Talos
// does not install.
func unready(want Spec, have Snapshot, s step.MachineState) string {
	unmet := s.Unmet
	if !nodesBecomeReady(want, have) {
		unmet = slices.DeleteFunc(slices.Clone(unmet), func(c string) bool { return conditionName(c) == "nodeReady" })
	}

	if !s.Ready && len(unmet) > 0 {
		return "is running but not ready" + Because(strings.Join(unmet, ", "))
	}

	return ""
}

// nodesBecomeReady is true when a node that is not Ready lacks something: Talos installs a network, or another tool
// did, which any Ready node proves.
func nodesBecomeReady(want Spec, have Snapshot) bool {
	return want.NodesBecomeReady || have.networked ||
		slices.ContainsFunc(have.Kubernetes.Nodes, func(n kubestate.Node) bool { return n.Ready })
}

// conditionName is the name at the beginning of an unmet condition such as "nodeReady: node is not ready".
func conditionName(condition string) string {
	name, _, _ := strings.Cut(condition, ":")

	return name
}

// mayComeBack is true while the Kubernetes API may only be away for a moment.
func mayComeBack(have Snapshot, p Policy) bool {
	return !have.Kubernetes.Reachable && !have.Kubernetes.Since.IsZero() &&
		have.Time.Sub(have.Kubernetes.Since) <= p.BootTimeout
}

// hasEtcd reports whether there is a cluster that a change could harm.
func hasEtcd(want Spec, have Snapshot) bool {
	return want.Bootstrapped || !want.OwnsBootstrap() || len(have.Etcd.Members) > 0 || len(have.Kubernetes.Nodes) > 0 ||
		slices.ContainsFunc(want.sorted(step.ControlPlane), func(m Machine) bool {
			s := have.Machines[m.Name]

			return s.Access == step.Member &&
				(s.BootstrapRequested || s.EtcdService.ProvesData() || s.Stage == step.StageRunning && s.Ready)
		})
}

// outOfService says why a machine does not work: it is not ready, or talosop cordoned its node. Empty when it works.
func outOfService(want Spec, have Snapshot, m Machine) string {
	if reason := NotReady(want, have, m); reason != "" {
		return reason
	}

	if node, ok := have.NodeOf(m); ok && node.HeldBack() {
		return fmt.Sprintf("its node %s is cordoned", node.Name)
	}

	return ""
}

// EvacuationOf is how a machine is taken out of service. It is not drained when its node is not Ready, because its
// pods cannot terminate in order. It is not drained either when that is the only node, because its pods have no other
// node.
func EvacuationOf(have Snapshot, m Machine, p Policy) step.Evacuation {
	var e step.Evacuation

	if n, ok := have.NodeOf(m); ok && have.Kubernetes.Reachable {
		e.Node, e.Drain = n.Name, n.Ready && !p.Drain.Skip && len(have.Kubernetes.Nodes) > 1
		e.Volumes = e.Drain && !p.Drain.IgnoreVolumes
	}

	e.HandOver = m.Role == step.ControlPlane && have.Leads(m)

	return e
}

// Unready is why machines are not a working part of the cluster yet, by name; see [NotReady].
func Unready(want Spec, have Snapshot) map[string]string {
	lacks := map[string]string{}
	have = have.indexed()

	for _, m := range want.all() {
		if reason := NotReady(want, have, m); reason != "" {
			lacks[m.Name] = reason
		}
	}

	return lacks
}

// removedAndGone is true for a removed machine of which nothing is left.
func removedAndGone(want Spec, m Machine, s step.MachineState) bool {
	return s.Access == step.Gone && !slices.ContainsFunc(want.Machines, func(w Machine) bool { return w.Name == m.Name })
}
