package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

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
