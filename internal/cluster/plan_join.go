package cluster

import (
	"cmp"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// planJoins decides which machines in maintenance mode get their configuration now: all at once, because none is in
// service. It also names the machines that cannot be planned, because they are busy or silent.
func planJoins(want Spec, have Snapshot, p Policy, d *Decision) {
	keys := planKeys(want, have)

	for _, m := range want.all() {
		s := have.Machines[m.Name]

		switch {
		case s.Busy != "":
			d.hold(m.Name, "%s", s.Busy)
		case d.concerns(m.Name):
		case s.Access == step.Unobserved:
			d.hold(m.Name, "not observed yet")
		case s.Access == step.Gone:
			d.hold(m.Name, "%s", podMissing)
		case replaceable(m, s):
		case s.Access == step.Unreachable:
			d.hold(m.Name, "no response from %s: %s%s", m.Address, s.Cause, hung(have, m, p))
		case s.GoingDown():
			d.hold(m.Name, "is about to reboot")
		case s.Access == step.Maintenance:
			planJoin(want, have, m, p, keys, d)
		}
	}
}

// planJoin configures a machine.
func planJoin(want Spec, have Snapshot, m Machine, p Policy, keys keyPlan, d *Decision) {
	if reason := notReturned(want, have, m); reason != "" && !m.Platform().Identified {
		d.hold(m.Name, "%s", reason)

		return
	}

	if other, ok := predecessor(want, have, m); ok {
		d.hold(m.Name, "joins after %s, which it replaces, leaves the cluster", other.Name)

		return
	}

	if planFormer(want, have, m, d) {
		return
	}

	if versionUnknown(want, have, p) {
		d.hold(m.Name, "joins after the Kubernetes API reports the version to use%s", Because(have.Kubernetes.Cause))

		return
	}

	if refuseOlderTalos(have, m, d) || refuseJoin(want, have, m, d) {
		return
	}

	if reason := waitsToJoin(want, have, m, p, keys); reason != "" {
		d.hold(m.Name, "%s", reason)

		return
	}

	if outdated(m, have.Machines[m.Name]) {
		// blank, so no version is skipped
		d.step(replacement(have, m, Release{Version: m.TalosVersion, Installer: m.Installer}, p))

		return
	}

	d.step(step.ApplyConfig{
		Machine: m.Name, Address: m.Address, Role: m.Role, Digest: m.ConfigDigest, Container: m.Container,
		Access: step.Maintenance, Install: m.InstallTarget, TalosVersion: m.TalosVersion,
		Installer: m.Installer, Kubernetes: joinsWith(want, have),
		Keys: keys.next(m),
	})
}

// planFormer removes what a machine left that returns without its data, or as other hardware, and reports whether there
// is anything. etcd counts a former member as down, and adds no member while one is down (etcd 3.6, mayAddMember).
func planFormer(want Spec, have Snapshot, m Machine, d *Decision) bool {
	if member, ok := formerMember(want, have, m); ok && m.Role == step.ControlPlane {
		planExpulsion(want, have, m, member, d)

		return true
	}

	// Kubernetes sees another machine too: without its own hostname its node gets a new name.
	node, ok := formerNode(want, have, m)
	if ok {
		d.step(step.DeleteNode{Machine: m.Name, Node: node.Name})
	}

	return ok
}

// refuseOlderTalos refuses a join with documents that the Talos of the machine does not have.
func refuseOlderTalos(have Snapshot, m Machine, d *Decision) (refused bool) {
	waits := have.Machines[m.Name].TalosVersion
	if !m.Platform().Installed || !versions.Older(waits, m.LeastTalos+".0-0") {
		return false
	}

	d.refuse(m.Name, "it runs Talos "+waits+", but its configuration has documents that need Talos "+
		m.LeastTalos+" or later", "Boot it from a medium of Talos "+m.LeastTalos+
		", or create the cluster with an older version_contract")

	return true
}

// waitsToJoin says why a machine that could join waits; empty where it joins now.
func waitsToJoin(want Spec, have Snapshot, m Machine, p Policy, keys keyPlan) string {
	switch {
	case keys.unknownTo(m, p):
		return "joins after " + keys.unknownPlane() + " reports which keys the control planes have" +
			Because(have.Kubernetes.Cause)
	case m.Role == step.Worker && !m.Platform().Identified && allWait(want.controlPlanes(), have):
		return "gets its configuration after a control plane has one"
	default:
		return ""
	}
}

// allWait is true while every control plane of a create waits for its configuration. A configured worker would not
// answer before a control plane signs its certificate (Talos 1.13, ctrl/secrets/api.go). After a kill, the next run
// could not distinguish it from a wrong address.
func allWait(controlPlanes []Machine, have Snapshot) bool {
	return len(controlPlanes) > 0 && !slices.ContainsFunc(controlPlanes, func(m Machine) bool {
		return have.Machines[m.Name].Access != step.Maintenance
	})
}

// versionUnknown reports whether the Kubernetes version of an existing cluster is unknown while its API may only be
// away for a moment. A newer kubelet cannot be downgraded. Before a restore no Kubernetes runs.
func versionUnknown(want Spec, have Snapshot, p Policy) bool {
	return mayComeBack(have, p) && want.Bootstrapped && !AwaitsRestore(want, have) && want.Kubernetes.Version != "" &&
		KubernetesRunning(want, have) == ""
}

// formerMember is the former etcd member of a machine in maintenance mode: the recorded one, or the one with its
// node's name or its address.
func formerMember(want Spec, have Snapshot, m Machine) (etcdstate.Member, bool) {
	member, ok := have.Etcd.Member(m.MemberID)
	if !ok {
		member, ok = have.memberWith(func(e etcdstate.Member) bool { return m.NodeName != "" && e.Name == m.NodeName })
	}

	if !ok {
		return have.MemberOf(m)
	}

	name, _ := ownerOf(want, have, member)

	return member, name == m.Name || name == PeerName(member)
}

// formerNode is the former node of a machine in maintenance mode, by its recorded name.
func formerNode(want Spec, have Snapshot, m Machine) (kubestate.Node, bool) {
	name := cmp.Or(have.Machines[m.Name].NodeName, m.NodeName)
	i := slices.IndexFunc(have.Kubernetes.Nodes, func(n kubestate.Node) bool { return name != "" && n.Name == name })

	if i < 0 || !have.Kubernetes.Reachable {
		return kubestate.Node{}, false
	}

	for _, other := range want.all() {
		if s := have.Machines[other.Name]; other.Name != m.Name && s.Access == step.Member && s.NodeName == name {
			return kubestate.Node{}, false
		}
	}

	return have.Kubernetes.Nodes[i], true
}

// planFormerNodes deletes orphaned nodes whose machines now have other names: those of wiped control planes that came
// back with a restored snapshot, and those whose hostname was changed.
func planFormerNodes(want Spec, have Snapshot, d *Decision) {
	if !have.Kubernetes.Reachable ||
		slices.ContainsFunc(want.all(), func(m Machine) bool { return have.Machines[m.Name].Nameless() }) {
		return
	}

	for _, m := range want.all() {
		s := have.Machines[m.Name]
		if s.Access != step.Member || m.NodeName == "" || s.NodeName == m.NodeName || d.concerns(m.Name) {
			continue
		}

		i := slices.IndexFunc(have.Kubernetes.Nodes, func(n kubestate.Node) bool { return n.Name == m.NodeName })
		taken := slices.ContainsFunc(want.all(),
			func(other Machine) bool { return have.Machines[other.Name].NodeName == m.NodeName })

		if i >= 0 && !taken && abandoned(have.Kubernetes.Nodes[i], want) {
			d.step(step.DeleteNode{Machine: m.Name, Node: m.NodeName})
		}
	}
}

// abandoned reports whether no kubelet runs a node. A control plane node from a restored snapshot looks ready until
// its heartbeats are missed.
func abandoned(n kubestate.Node, want Spec) bool {
	return !n.Ready || n.ControlPlane && want.RestoreFrom != ""
}

// predecessor is the removed machine that is still in the cluster at the address of a machine that will join.
func predecessor(want Spec, have Snapshot, m Machine) (Machine, bool) {
	for _, r := range want.Removed {
		if !sameHost(r.Address, m.Address) {
			continue
		}

		if _, member := memberOfRemoved(want, have, r); member {
			return r, true
		}
	}

	return Machine{}, false
}

// planExpulsion removes the member of a machine that lost its data, or is gone, through another control plane, when
// the remaining members hold the quorum without it.
func planExpulsion(want Spec, have Snapshot, m Machine, member etcdstate.Member, d *Decision) {
	if i := d.membershipChange(); i != "" {
		d.hold(m.Name, "its etcd member %s is removed after %s", member.ID, i)

		return
	}

	q := quorumOf(want, have)
	if q.Healthy[member.ID] {
		d.hold(m.Name, "etcd member %s (%s) matches it, but is healthy and belongs to %s", member.ID, member.NameOrID(),
			q.Votes[member.ID])

		return
	}

	if reason := q.Without(member.ID); reason != "" {
		d.hold(m.Name, "its etcd member %s cannot be removed: %s", member.ID, reason)

		return
	}

	via := q.Survivor(member.ID)
	if via == "" {
		d.hold(m.Name, "its etcd member %s is removed after a healthy control plane responds", member.ID)

		return
	}

	d.step(step.RemoveMember{Machine: m.Name, Member: member.ID, Via: via})
}
