package health

import (
	"cmp"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// Machine is one machine of a cluster as observed from outside: a control plane through its Talos API, etcd and
// Kubernetes, and any other machine only through its node.
type Machine struct {
	// Title names it as the conditions do, such as "cp-1 (10.0.0.11)".
	Title string
	// Name is that of its node or its etcd member. It and Address are empty when they are unknown.
	Name, Address string
	Role          step.Role
	// Status is False when something is known to be wrong with it, and Unknown when that cannot be decided.
	Status Status
	// Silent is true for a control plane whose Talos API does not respond.
	Silent bool
	// Talos is the state of Talos, such as "running" or "does not answer"; empty for a machine that was observed only as
	// a node.
	Talos string
	// TalosVersion is the version that the machine or its node reports; empty when neither does.
	TalosVersion string
	// Node and Member are nil when none was observed.
	Node   *kubestate.Node
	Member *Member
}

// machinesOf lists the control planes by their titles, then other nodes by role and name.
func machinesOf(planes []plane, have cluster.Snapshot, etcd Etcd) []Machine {
	var out []Machine

	rest := slices.Clone(have.Kubernetes.Nodes)

	for _, p := range planes {
		var node *kubestate.Node

		if i := slices.IndexFunc(rest, p.isOn); i >= 0 {
			found := rest[i]
			node, rest = &found, slices.Delete(rest, i, i+1)
		}

		out = append(out, p.machine(node, have, etcd))
	}

	slices.SortFunc(rest, func(a, b kubestate.Node) int {
		return cmp.Or(cmp.Compare(cluster.RoleOf(a), cluster.RoleOf(b)), strings.Compare(a.Name, b.Name))
	})

	for _, n := range rest {
		out = append(out, Machine{Title: titled(n.Name, n.Address()), Name: n.Name, Address: n.Address(),
			Role: cluster.RoleOf(n), Status: statusOf(&n, true), TalosVersion: n.TalosVersion, Node: &n})
	}

	return out
}

func (p plane) machine(node *kubestate.Node, have cluster.Snapshot, etcd Etcd) Machine {
	m := Machine{Title: p.title, Name: p.name, Address: p.address, Role: step.ControlPlane, Talos: string(p.state.Stage),
		Node: node, TalosVersion: p.state.TalosVersion}
	if node != nil {
		m.TalosVersion = cmp.Or(m.TalosVersion, node.TalosVersion)
	}

	if i := slices.IndexFunc(etcd.Members, func(e Member) bool { return e.ID == p.member }); i >= 0 {
		m.Member = &etcd.Members[i]
	}

	talos := True

	reason, known := p.unready()

	switch {
	case reason == "":
	case known:
		talos = False
	default:
		talos, m.Silent = Unknown, true
	}

	// A stage that is not running is reason enough.
	if reason != "" && (p.state.Access != step.Member || p.state.Stage == step.StageRunning) {
		m.Talos = reason
	}

	member := Unknown

	switch {
	case m.Member != nil && len(m.Member.Errors) == 0:
		member = True
	case m.Member != nil || have.Etcd.Known:
		member = False
	}

	m.Status = worst(talos, statusOf(node, have.Kubernetes.Reachable), member)

	return m
}

// statusOf is the status of a node; listed is true when the nodes are known.
func statusOf(n *kubestate.Node, listed bool) Status {
	switch {
	case !listed:
		return Unknown
	case n == nil || !n.Ready || n.Unschedulable:
		return False
	default:
		return True
	}
}

// worst is False before Unknown before True.
func worst(statuses ...Status) Status {
	for _, s := range []Status{False, Unknown} {
		if slices.Contains(statuses, s) {
			return s
		}
	}

	return True
}
