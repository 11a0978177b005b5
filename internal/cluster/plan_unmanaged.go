package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// UnmanagedPool is the pool of [Spec.UpgradeOnly] in [Spec.Pools]: no user's pool begins with a space.
const UnmanagedPool = " unmanaged"

// UnmanagedName is the name of a machine of [Spec.UpgradeOnly], from its node.
func UnmanagedName(node string) string { return "node " + node }

// OfUnmanaged reports whether a step is on such a machine.
func OfUnmanaged(step step.Step) bool { return strings.HasPrefix(step.On(), UnmanagedName("")) }

func (m Machine) unmanaged() bool { return m.Pool == UnmanagedPool }

// withoutScaledIn is the spec without upgrade-only machines whose nodes are gone, or that now have a resource. An
// autoscaler removed them, which is not a failure, or another resource upgrades them.
func (s Spec) withoutScaledIn(have Snapshot) Spec {
	if !have.Kubernetes.Reachable || len(s.UpgradeOnly) == 0 {
		return s
	}

	own := nodesOf(slices.Concat(s.Machines, s.Removed), have)

	s.UpgradeOnly = slices.DeleteFunc(slices.Clone(s.UpgradeOnly), func(m Machine) bool {
		node, registered := have.nodeNamed(m.NodeName, "")

		return !registered || have.Kubernetes.Owners[node.Name] != "" || have.Machines[m.Name].Claimed || own[node.Name]
	})

	return s
}

// upgradesOnly reports whether the machine of that name is upgrade-only and answers as the right node.
func (s Spec) upgradesOnly(have Snapshot, name string) bool {
	return slices.ContainsFunc(s.UpgradeOnly,
		func(m Machine) bool { return m.Name == name && have.Machines[name].NodeName == m.NodeName })
}

// outgrown is true for a machine without a resource that is not older than wanted, or not the one whose node was
// observed: it never gets another Talos.
func outgrown(m Machine, s step.MachineState) bool {
	return m.unmanaged() && (s.NodeName != m.NodeName || !versions.Older(s.TalosVersion, m.TalosVersion))
}

// holdBusyUnmanaged waits for steps on machines without a resource, as planJoins does for all others.
func holdBusyUnmanaged(want Spec, have Snapshot, d *Decision) {
	for _, m := range want.UpgradeOnly {
		if busy := have.Machines[m.Name].Busy; busy != "" {
			d.hold(m.Name, "%s", busy)
		}
	}
}

// planUnmanaged upgrades machines without a resource, within their own budget and after all others.
func (r rollout) planUnmanaged(d *Decision) {
	if len(r.want.UpgradeOnly) == 0 {
		return
	}

	stay := workersMustStay(r.want, r.have)

	for _, m := range r.want.all() {
		if change, _ := r.changeOf(m); change != nil && r.disrupts(m) {
			stay = "machines of the cluster come first, but " + m.Name + " is not done"

			break
		}
	}

	b := budgetOf(r.want, r.have, UnmanagedPool, r.policy)

	for _, m := range OfRole(r.want.UpgradeOnly, step.Worker) {
		upgrade, ok := upgradeOf(r.have, m, r.policy)

		switch {
		case d.concerns(m.Name):
		case !ok:
			r.holdUnmanaged(m, d)
		case stay != "":
			d.hold(m.Name, "Talos upgrade waits: %s", stay)
		case r.inTransit(m, upgrade) != "":
			d.hold(m.Name, "Talos upgrade waits: %s", r.inTransit(m, upgrade))
		case !b.take(m.Name):
			d.hold(m.Name, "Talos upgrade waits: %s", b)
		default:
			d.step(upgrade)
		}
	}
}

// holdUnmanaged waits for a machine without a resource during its upgrade, or while its node is cordoned for it,
// until it works or its node is deleted.
func (r rollout) holdUnmanaged(m Machine, d *Decision) {
	s := r.have.Machines[m.Name]
	node, _ := r.have.nodeNamed(m.NodeName, "")
	lags := versions.Older(node.TalosVersion, m.TalosVersion)

	if s.Upgraded.Version == "" && !node.HeldBack() && !lags {
		return
	}

	reason := NotReady(r.want, r.have, m)

	switch {
	case s.Access == step.Member && s.NodeName != m.NodeName:
		reason = fmt.Sprintf("responds as another node: %s", s.NodeName)
	case reason == "" && lags:
		reason = fmt.Sprintf("runs %s, but its node still reports %s", s.TalosVersion, node.TalosVersion)
	case reason == "":
		return
	}

	d.hold(m.Name, "%s; the wait ends when its node is deleted", reason)
}

// tellTalos sets the Talos version on the node of a machine of the model.
func (s *Snapshot) tellTalos(m Machine, version string) {
	if m.unmanaged() {
		s.onNode(m.NodeName, func(n *kubestate.Node) { n.TalosVersion = version })
	}
}
