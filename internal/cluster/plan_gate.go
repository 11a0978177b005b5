package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// gate says why a control plane must not go out of service now; remedy is set when waiting does not help. A machine
// whose own etcd does not run costs no vote.
func gate(want Spec, have Snapshot, m Machine, p Policy) (reason, remedy string) {
	if have.Machines[m.Name].EtcdDown() {
		// If the member list is answered although the others lack the quorum for it, the answer needs this vote: the etcd
		// that was observed down is back.
		if member, ok := have.MemberOf(m); ok && have.Etcd.Known {
			if reason := quorumOf(want, have).Down(member.ID); reason != "" {
				return reason, ""
			}
		}

		return otherDisrupted(want, have, m, p), ""
	}

	if !have.Etcd.Known {
		return "etcd does not respond" + Because(have.Etcd.Cause), ""
	}

	if reason := othersUnfit(want, have, m); reason != "" {
		return reason, ""
	}

	member, ok := have.MemberOf(m)

	if reason := have.Etcd.Discord(member.ID); reason != "" || !ok {
		return reason, ""
	}

	q := quorumOf(want, have)
	reason = q.Down(member.ID)

	if reason != "" && len(q.Votes) == 2 {
		if leaving := leavingVoter(q, want, have); leaving != "" {
			return "etcd has two members and needs both until " + leaving + " left", ""
		}

		return "etcd has two members and needs both for its quorum",
			"Add a third control plane, or remove one, before this change"
	}

	return reason, ""
}

// otherDisrupted names another control plane that is or may be disrupted: one that was rebooted and is not back, or
// that just went silent. It applies where etcd has nothing to lose any more, because one machine at a time is still
// the rule.
func otherDisrupted(want Spec, have Snapshot, m Machine, p Policy) string {
	for _, other := range want.everyControlPlane() {
		s := have.Machines[other.Name]

		switch {
		case other.Name == m.Name:
		case s.Busy != "":
			return other.Name + " is " + s.Busy
		case memberMoved(have, other) != "":
			return other.Name + " " + memberMoved(have, other)
		case s.GoingDown() || s.RebootedFrom != "" && s.Access != step.Member:
			return other.Name + " was rebooted and has not returned" + Because(s.Cause)
		case s.RebootedFrom != "" && NotReady(want, have, other) != "":
			return other.Name + " was rebooted and " + NotReady(want, have, other)
		case s.Access == step.Member && s.InSequence():
			return fmt.Sprintf("%s is %s", other.Name, s.Stage)
		case (s.Access == step.Unreachable || s.Stage == step.StageBooting) && have.Time.Sub(s.Since) <= p.DeadAfter:
			return other.Name + " may be about to return" + Because(s.Cause)
		}
	}

	return ""
}

// othersUnfit names another control plane that does not work, inside or outside the spec.
func othersUnfit(want Spec, have Snapshot, m Machine) string {
	for _, other := range want.sorted(step.ControlPlane) {
		if other.Name == m.Name {
			continue
		}

		if reason := outOfService(want, have, other); reason != "" {
			return other.Name + " " + reason
		}
	}

	for _, other := range want.removed(step.ControlPlane) {
		if moved := memberMoved(have, other); moved != "" && other.Name != m.Name {
			return other.Name + " " + moved
		}
	}

	for _, member := range have.Etcd.Members {
		if name, state := ownerOf(want, have, member); name != m.Name {
			if reason := memberUnfit(want, have, member, name, state); reason != "" {
				return reason
			}
		}
	}

	return nodesUnfit(want, have, m)
}

// memberUnfit says what is wrong with the machine of a member.
func memberUnfit(want Spec, have Snapshot, member etcdstate.Member, name string, s step.MachineState) string {
	switch {
	case member.Learner:
		return name + " is a learner in etcd, not promoted yet"
	case s.Access != step.Member:
		return fmt.Sprintf("etcd member %s of %s does not respond%s", member.ID, name, Because(s.Cause))
	case s.Busy != "":
		return name + " is " + s.Busy
	case s.Stage != step.StageRunning || s.GoingDown():
		return fmt.Sprintf("%s is %s", name, s.Stage)
	case unready(want, have, s) != "":
		return name + " " + unready(want, have, s)
	default:
		return ""
	}
}

// nodesUnfit names another control plane node that is not Ready, or a node that a run of another resource left
// cordoned. A node whose machine left etcd holds nothing.
func nodesUnfit(want Spec, have Snapshot, m Machine) string {
	own, _ := have.NodeOf(m)

	for _, node := range have.Kubernetes.Nodes {
		if node.ControlPlane && !node.Ready && nodesBecomeReady(want, have) && own.Name != node.Name &&
			!leftBehind(want, have, node) {
			return fmt.Sprintf("control plane node %s is not Ready; if its machine no longer exists, run "+
				"`kubectl delete node %s` to continue without it", node.Name, node.Name)
		}
	}

	return cordonedElsewhere(want, have)
}

// leftBehind is true for a control plane node, outside the spec, that is not Ready and whose machine left etcd: a run
// was interrupted before it deleted the node, or the machine was reset by hand. Nodes of the spec will still be
// deleted.
func leftBehind(want Spec, have Snapshot, node kubestate.Node) bool {
	if !node.ControlPlane || node.Ready || !have.Etcd.Known ||
		nodesOf(slices.Concat(want.Machines, want.Removed), have)[node.Name] {
		return false
	}

	// A machine that joined again under another name has a node of that name.
	_, member := have.memberWith(func(e etcdstate.Member) bool {
		named := slices.ContainsFunc(have.Kubernetes.Nodes, func(n kubestate.Node) bool { return n.Name == e.Name })
		at := slices.ContainsFunc(node.Addresses, func(a string) bool { return sameHost(a, e.Host()) })

		return e.Name == node.Name || at && !named
	})

	return !member
}

// othersCordon is how long a node that another resource cordoned holds this one. By then its run is finished, or was
// applied again. An older cordon belongs to an abandoned machine, such as one that was removed from state. It has no
// etcd member, and a pool that owns it counts it in its budget.
const othersCordon = time.Hour

// cordonedElsewhere names a node outside the spec that talosop cordoned: its machine did not return from a step of
// another resource, so this rollout stops too.
func cordonedElsewhere(want Spec, have Snapshot) string {
	own := nodesOf(want.Known(), have)

	for _, node := range have.Kubernetes.Nodes {
		since := node.CordonedAt
		if since.IsZero() {
			since = node.UnschedulableSince
		}

		if !node.HeldBack() || own[node.Name] || !since.IsZero() && have.Time.Sub(since) > othersCordon {
			continue
		}

		if !leftBehind(want, have, node) {
			return cordonOf(node, since)
		}
	}

	return ""
}

// cordonOf says which resource cordoned a node, since when, and how to uncordon it.
func cordonOf(node kubestate.Node, since time.Time) string {
	by, at := "another resource", ""
	if node.CordonedBy != "" {
		by = node.CordonedBy
	}

	if !since.IsZero() {
		at = ", since " + since.UTC().Format(time.RFC3339)
	}

	return fmt.Sprintf("another apply (%s%s) keeps node %s cordoned. If that apply was killed, run it again, or run "+
		"`kubectl uncordon %s`", by, at, node.Name, node.Name)
}
