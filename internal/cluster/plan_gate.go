package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// gate says why a control plane must not go out of service now; remedy is set when
// waiting does not help. A machine whose own etcd does not run costs no vote.
func gate(want Spec, have Snapshot, m Machine, p Policy) (reason, remedy string) {
	if have.Machines[m.Name].EtcdDown() {
		// A list that is answered although the others could not answer it needs this vote:
		// the etcd that was seen down a moment ago is back.
		if member, ok := have.MemberOf(m); ok && have.Etcd.Known {
			if reason := quorumOf(want, have).Down(member.ID); reason != "" {
				return reason, ""
			}
		}

		return otherUnderWay(want, have, m, p), ""
	}

	if !have.Etcd.Known {
		return "etcd does not answer" + Because(have.Etcd.Cause), ""
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

		return "etcd has two members and needs both, so neither can be spared",
			"Add a third control plane, or remove one, before this change"
	}

	return reason, ""
}

// otherUnderWay names another control plane that is being disrupted, or may be: one that
// was rebooted and is not back, or that went silent just now. It is asked where nothing
// can be lost in etcd any more, and one machine at a time still is the rule.
func otherUnderWay(want Spec, have Snapshot, m Machine, p Policy) string {
	for _, other := range want.everyControlPlane() {
		s := have.Machines[other.Name]

		switch {
		case other.Name == m.Name:
		case s.Busy != "":
			return other.Name + " is " + s.Busy
		case memberMoved(have, other) != "":
			return other.Name + " " + memberMoved(have, other)
		case s.GoingDown() || s.RebootedFrom != "" && s.Access != step.Member:
			return other.Name + " was rebooted and is not back" + Because(s.Cause)
		case s.RebootedFrom != "" && NotReady(want, have, other) != "":
			return other.Name + " was rebooted and " + NotReady(want, have, other)
		case s.Access == step.Member && s.InSequence():
			return fmt.Sprintf("%s is %s", other.Name, s.Stage)
		case (s.Access == step.Unreachable || s.Stage == step.StageBooting) && have.Time.Sub(s.Since) <= p.DeadAfter:
			return other.Name + " may be about to come back" + Because(s.Cause)
		}
	}

	return ""
}

// othersUnfit says which other control plane does not work, in the spec or beyond it.
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
		return fmt.Sprintf("etcd member %s of %s does not answer%s", member.ID, name, Because(s.Cause))
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

// nodesUnfit names a control plane that Kubernetes has, but for one, and that is not Ready, or a node that a run of
// another resource left cordoned. A node whose machine is in etcd no more holds nobody.
func nodesUnfit(want Spec, have Snapshot, m Machine) string {
	own, _ := have.NodeOf(m)

	for _, node := range have.Kubernetes.Nodes {
		if node.ControlPlane && !node.Ready && nodesBecomeReady(want, have) && own.Name != node.Name &&
			!leftBehind(want, have, node) {
			return fmt.Sprintf("control plane node %s is not Ready; when its machine is gone for good, "+
				"`kubectl delete node %s` goes on without it", node.Name, node.Name)
		}
	}

	return cordonedElsewhere(want, have)
}

// leftBehind is true for the node of somebody's control plane that left etcd, is not Ready, and that nobody deleted: a
// run was interrupted in between, or the machine was reset by hand. Those of the spec are still to be deleted.
func leftBehind(want Spec, have Snapshot, node kubestate.Node) bool {
	if !node.ControlPlane || node.Ready || !have.Etcd.Known ||
		nodesOf(slices.Concat(want.Machines, want.Removed), have)[node.Name] {
		return false
	}

	// A machine that joined anew under another name has a node of that name.
	_, member := have.memberWith(func(e etcdstate.Member) bool {
		named := slices.ContainsFunc(have.Kubernetes.Nodes, func(n kubestate.Node) bool { return n.Name == e.Name })
		at := slices.ContainsFunc(node.Addresses, func(a string) bool { return sameHost(a, e.Host()) })

		return e.Name == node.Name || at && !named
	})

	return !member
}

// othersCordon is how long a node that another resource cordoned holds this one: its run is
// through by then, or is applied again. One that is left behind for longer was given up, as a
// machine that was taken out of state; of etcd it has nothing, and the budgets of pools count it
// where it belongs to one.
const othersCordon = time.Hour

// cordonedElsewhere names a node that talosop cordoned and that is none of the spec's: its
// machine did not come back from what another resource did to it, so the rollout stops
// here, too.
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

// cordonOf says who cordoned a node, since when, and how it is given back.
func cordonOf(node kubestate.Node, since time.Time) string {
	by, at := "another resource", ""
	if node.CordonedBy != "" {
		by = node.CordonedBy
	}

	if !since.IsZero() {
		at = " since " + since.UTC().Format(time.RFC3339)
	}

	return fmt.Sprintf("node %s is cordoned by talosop for %s%s, and its machine is at work or did not come back; when "+
		"it was given up, `kubectl uncordon %s` goes on without it", node.Name, by, at, node.Name)
}
