package cluster

import (
	"cmp"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// planJoins decides which machines in maintenance mode get their configuration now:
// all of them at once, since none of them is in service. It also names the machines that
// nothing can be decided about, because they are at work or silent.
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
			d.hold(m.Name, "no answer from %s: %s%s", m.Address, s.Cause, hung(have, m, p))
		case s.GoingDown():
			d.hold(m.Name, "is about to reboot")
		case s.Access == step.Maintenance:
			planJoin(want, have, m, p, keys, d)
		}
	}
}

// planJoin configures a machine. A control plane that comes back without its data, or
// as other hardware, first loses the member that it was: etcd counts that one as down,
// and adds nobody while a member is (etcd 3.6, mayAddMember).
func planJoin(want Spec, have Snapshot, m Machine, p Policy, keys keyPlan, d *Decision) {
	if reason := notReturned(want, have, m); reason != "" && !m.Platform().Identified {
		d.hold(m.Name, "%s", reason)

		return
	}

	if other, ok := predecessor(want, have, m); ok {
		d.hold(m.Name, "joins once %s is out of the cluster, whose place it takes", other.Name)

		return
	}

	if member, ok := formerMember(want, have, m); ok && m.Role == step.ControlPlane {
		planExpulsion(want, have, m, member, d)

		return
	}

	// It is somebody else to Kubernetes, too: without a hostname of its own its node gets
	// a new name.
	if node, ok := formerNode(want, have, m); ok {
		d.step(step.DeleteNode{Machine: m.Name, Node: node.Name})

		return
	}

	if versionUnknown(want, have, p) {
		d.hold(m.Name, "joins once the Kubernetes API tells which version it has to have%s", Because(have.Kubernetes.Cause))

		return
	}

	if waits := have.Machines[m.Name].TalosVersion; m.Platform().Installed && versions.Older(waits, m.LeastTalos+".0-0") {
		d.refuse(m.Name, "it waits with Talos "+waits+", and its configuration has documents that Talos knows from "+
			m.LeastTalos+" on", "Boot it from a medium of Talos "+m.LeastTalos+
			", or set version_contract to the contract before it when the cluster is made")

		return
	}

	if refuseJoin(want, have, m, d) {
		return
	}

	if reason := waitsToJoin(want, have, m, p, keys); reason != "" {
		d.hold(m.Name, "%s", reason)

		return
	}

	if outdated(m, have.Machines[m.Name]) {
		// blank, so no version is passed by
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

// waitsToJoin says what a machine waits for that could join; empty where it joins now.
func waitsToJoin(want Spec, have Snapshot, m Machine, p Policy, keys keyPlan) string {
	switch {
	case keys.unknownTo(m, p):
		return "joins once nodes tell which keys the control planes carry" + Because(have.Kubernetes.Cause)
	case m.Role == step.Worker && !m.Platform().Identified && allWait(want.controlPlanes(), have):
		return "gets its configuration once a control plane has one"
	default:
		return ""
	}
}

// allWait is true while every control plane of a create waits for its configuration. A worker that had one would not
// answer before a control plane works, which signs its certificate (Talos 1.13, ctrl/secrets/api.go): after a kill, the
// next run could not tell it from a wrong address.
func allWait(controlPlanes []Machine, have Snapshot) bool {
	return len(controlPlanes) > 0 && !slices.ContainsFunc(controlPlanes, func(m Machine) bool {
		return have.Machines[m.Name].Access != step.Maintenance
	})
}

// versionUnknown reports whether nobody says which Kubernetes an existing cluster runs, while
// its API may just be away for a moment: a kubelet that is newer cannot go back. None runs
// while etcd has yet to begin with a snapshot.
func versionUnknown(want Spec, have Snapshot, p Policy) bool {
	return mayComeBack(have, p) && want.Bootstrapped && !AwaitsRestore(want, have) && want.Kubernetes.Version != "" &&
		KubernetesRunning(want, have) == ""
}

// mayComeBack is true while the Kubernetes API may just be away for a moment.
func mayComeBack(have Snapshot, p Policy) bool {
	return !have.Kubernetes.Reachable && !have.Kubernetes.Since.IsZero() &&
		have.Time.Sub(have.Kubernetes.Since) <= p.BootTimeout
}

// formerMember is the etcd member that a machine in maintenance mode had in its life
// before: the one that was recorded, else by its node's name or its address.
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

// formerNode is the node that a machine in maintenance mode had in its life before, by the
// name that was recorded for it.
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

// planFormerNodes deletes nodes that nobody runs any more, because their machines have other
// names now: those that came back with a restored snapshot, of control planes that were wiped
// after it was taken, and those whose hostname was changed.
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

// abandoned reports whether no kubelet runs a node. One of a control plane in a snapshot that
// is being restored looks ready until somebody misses it.
func abandoned(n kubestate.Node, want Spec) bool {
	return !n.Ready || n.ControlPlane && want.RestoreFrom != ""
}

// predecessor is the removed machine that still has a part in the cluster at the address
// of a machine that is to join.
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

// planExpulsion removes the member of a machine that lost its data, or is gone, through
// another control plane, when those that are left hold the quorum without it.
func planExpulsion(want Spec, have Snapshot, m Machine, member etcdstate.Member, d *Decision) {
	if i := d.membershipChange(); i != "" {
		d.hold(m.Name, "its etcd member %s is removed after %s", member.ID, i)

		return
	}

	q := quorumOf(want, have)
	if q.Healthy[member.ID] {
		d.hold(m.Name, "etcd member %s (%s) was taken for its own, and works: it belongs to %s", member.ID, member.NameOrID(),
			q.Votes[member.ID])

		return
	}

	if reason := q.Without(member.ID); reason != "" {
		d.hold(m.Name, "its etcd member %s cannot be removed: %s", member.ID, reason)

		return
	}

	via := q.Survivor(member.ID)
	if via == "" {
		d.hold(m.Name, "its etcd member %s is removed once a control plane that works can be asked", member.ID)

		return
	}

	d.step(step.RemoveMember{Machine: m.Name, Member: member.ID, Via: via})
}

// membershipChange names the machine whose membership of etcd a step changes already:
// one changes at a time.
func (d *Decision) membershipChange() string {
	for _, s := range d.Steps {
		if s.ChangesMembers() {
			return s.On()
		}
	}

	return ""
}
