package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// Kubernetes identifies a node by its name, and so does etcd a member: two machines of one name at the same time
// would report one node. A machine that gets the name of a leaving one, as new hardware under the same key does,
// joins when that one is out.

// withoutWaiting is the spec without the machines that cannot join yet, because a removed machine still has their
// name. All rules want them only once it is out, so the change is a removal first and then a join.
func (s Spec) withoutWaiting(have Snapshot, p Policy) Spec {
	waiting := map[string]Machine{} // their predecessors

	for _, m := range s.Machines {
		if predecessor, waits := nameHolder(s, have, m, p); waits {
			waiting[m.Name] = predecessor
		}
	}

	if len(waiting) == 0 {
		return s
	}

	wanted := make([]Machine, 0, len(s.Machines))

	for _, m := range s.Machines {
		if predecessor, waits := waiting[m.Name]; waits {
			s.waiting = append(s.waiting, waitingMachine{machine: m, predecessor: predecessor})
		} else {
			wanted = append(wanted, m)
		}
	}

	slices.SortStableFunc(s.waiting, func(a, b waitingMachine) int { return cmp.Compare(a.machine.Role, b.machine.Role) })

	s.Machines, s.order = wanted, nil

	return s.Ordered()
}

// nameHolder is the removed machine that still has the node or the etcd member with the name of a machine that will
// join. One at the same address is gone from there, and counts as a predecessor.
func nameHolder(want Spec, have Snapshot, m Machine, p Policy) (Machine, bool) {
	if have.Machines[m.Name].Access != step.Maintenance || m.Platform().NamesNode || m.WantedNode == "" {
		return Machine{}, false
	}

	for _, r := range want.Removed {
		if cmp.Or(have.Machines[r.Name].NodeName, r.NodeName) != m.WantedNode || sameHost(r.Address, m.Address) {
			continue
		}

		_, member := memberOfRemoved(want, have, r)
		_, node := nodeOfRemoved(want, have, r)

		if member || node && have.Kubernetes.Reachable || !departed(want, have, r, p) {
			return r, true
		}
	}

	return Machine{}, false
}

// holdWaiting holds the machines that withoutWaiting left out, with their reason.
func holdWaiting(want Spec, d *Decision) {
	for _, w := range want.waiting {
		d.hold(w.machine.Name, "joins as node %s after %s, which has that name, leaves the cluster",
			w.machine.WantedNode, w.predecessor.Name)
	}
}

// refuseNewNodeNames refuses to rename a machine with a working node. Kubernetes identifies a node by its name, so
// another node would register, and the pods and volumes of the former would be left behind.
func refuseNewNodeNames(want Spec, have Snapshot, d *Decision) {
	if len(d.Refusals) > 0 {
		return // a foreign node has another name anyway
	}

	for _, m := range want.Machines {
		s := have.Machines[m.Name]
		if s.Access != step.Member || m.Platform().NamesNode || m.WantedNode == "" || s.NodeName == "" ||
			s.NodeName == m.WantedNode {
			continue
		}

		d.refuse(m.Name, fmt.Sprintf("it runs as node %s, and its new name would be %s", s.NodeName, m.WantedNode),
			fmt.Sprintf("Talos cannot rename a node. To keep the name, set hostname = %q and remove patches that set "+
				"another. To use the new name, remove the machine, apply, and add it again", s.NodeName))
	}
}

// refuseSharedNodeNames refuses to let a machine join under the name of a node that another machine runs, inside or
// outside the spec: two kubelets would report one node.
func refuseSharedNodeNames(want Spec, have Snapshot, d *Decision) {
	nodes := map[string]string{}

	for _, m := range want.Machines {
		if s := have.Machines[m.Name]; s.Access == step.Member && s.NodeName != "" {
			nodes[s.NodeName] = m.Name
		}
	}

	for _, m := range want.Machines {
		if have.Machines[m.Name].Access != step.Maintenance || m.Platform().NamesNode || m.WantedNode == "" {
			continue
		}

		if other := cmp.Or(nodes[m.WantedNode], nodeElsewhere(want, have, m)); other != "" {
			d.refuse(m.Name, fmt.Sprintf("its node name would be %s, which is the node of %s", m.WantedNode, other),
				"Use another hostname, or another key in machines")
		}

		nodes[m.WantedNode] = m.Name
	}
}

// nodeElsewhere names the machine outside the spec whose kubelet reports the future node of a machine; empty when
// there is none. A node that is not Ready may be left from the machine itself, and a node from a restored snapshot
// looks ready until its heartbeats are missed.
func nodeElsewhere(want Spec, have Snapshot, m Machine) string {
	i := slices.IndexFunc(have.Kubernetes.Nodes, func(n kubestate.Node) bool { return n.Name == m.WantedNode && n.Ready })
	if i < 0 || !have.Kubernetes.Reachable || want.RestoreFrom != "" {
		return ""
	}

	node := have.Kubernetes.Nodes[i]
	own := cmp.Or(have.Machines[m.Name].NodeName, m.NodeName) == node.Name ||
		slices.ContainsFunc(node.Addresses, func(a string) bool { return sameHost(a, m.Address) })

	if own || nodesOf(slices.Concat(want.Machines, want.Removed), have)[node.Name] {
		return ""
	}

	return "a machine that this resource does not manage"
}
