package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// OfUnmanaged reports whether a step is on such a machine.
func OfUnmanaged(step step.Step) bool { return strings.HasPrefix(step.On(), UnmanagedName("")) }

func (m Machine) unmanaged() bool { return m.Pool == UnmanagedPool }

// withoutScaledIn is the spec without the machines of [Spec.ChangeOnly] whose nodes are gone, or that now have a
// resource. An autoscaler removed them, which is not a failure, or another resource changes them.
func (s Spec) withoutScaledIn(have Snapshot) Spec {
	if !have.Kubernetes.Reachable || len(s.ChangeOnly) == 0 {
		return s
	}

	own := nodesOf(slices.Concat(s.Machines, s.Removed), have)

	s.ChangeOnly = slices.DeleteFunc(slices.Clone(s.ChangeOnly), func(m Machine) bool {
		node, registered := have.nodeNamed(m.NodeName, "")

		return !registered || have.Kubernetes.Owners[node.Name] != "" || have.Machines[m.Name].Claimed || own[node.Name]
	})

	return s
}

// changesOnly reports whether the machine of that name is only changed and answers as the right node.
func (s Spec) changesOnly(have Snapshot, name string) bool {
	return slices.ContainsFunc(s.ChangeOnly,
		func(m Machine) bool { return m.Name == name && have.Machines[name].NodeName == m.NodeName })
}

// holdBusyUnmanaged waits for steps on machines without a resource, as planJoins does for all others.
func holdBusyUnmanaged(want Spec, have Snapshot, d *Decision) {
	for _, m := range want.ChangeOnly {
		if busy := have.Machines[m.Name].Busy; busy != "" {
			d.hold(m.Name, "%s", busy)
		}
	}
}

// planUnmanaged changes machines without a resource, within their own budget and after all others.
func (r rollout) planUnmanaged(d *Decision) {
	if len(r.want.ChangeOnly) == 0 {
		return
	}

	stay := workersMustStay(r.want, r.have)

	for _, m := range r.want.all() {
		if change, _ := r.changeOf(m); change != nil && r.disrupts(m) {
			stay = "machines of the cluster come first, but " + m.Name + " is not done"

			break
		}
	}

	stay = cmp.Or(stay, r.canary.waits)
	b := budgetOf(r.want, r.have, UnmanagedPool, r.policy)

	for _, m := range OfRole(r.want.ChangeOnly, step.Worker) {
		change := r.changeOfUnmanaged(m)

		switch {
		case d.concerns(m.Name):
		case change == nil:
			r.holdUnmanaged(m, d)
		case stay != "":
			d.hold(m.Name, "%s waits: %s", kindOf(change), stay)
		case r.inTransit(m, change) != "":
			d.hold(m.Name, "%s waits: %s", kindOf(change), r.inTransit(m, change))
		case r.kubeletAhead(m, change) != "":
			d.hold(m.Name, "%s waits: %s", kindOf(change), r.kubeletAhead(m, change))
		case !b.take(m.Name):
			d.hold(m.Name, "%s waits: %s", kindOf(change), b)
		default:
			d.step(change)
		}
	}
}

// changeOfUnmanaged is the next change of a machine without a resource: a newer Talos, otherwise its configuration.
func (r rollout) changeOfUnmanaged(m Machine) step.Step {
	if upgrade, ok := upgradeOf(r.have, m, r.policy); ok {
		return upgrade
	}

	if m.ConfigDigest == "" || r.have.Machines[m.Name].NodeName != m.NodeName {
		return nil
	}

	if config, ok := r.configOf(m); ok {
		return config
	}

	return nil
}

// kubeletAhead names an API server that is older than the kubelet in the configuration of a machine without a
// resource: unlike that of other machines, it changes with the rest of the configuration.
func (r rollout) kubeletAhead(m Machine, change step.Step) string {
	to, known := kubenames.ImageVersion(m.Images[kubenames.Kubelet])
	if _, configures := change.(step.ApplyConfig); !configures || !known {
		return ""
	}

	return olderAPIServer(r.have, to)
}

// holdUnmanaged waits for a machine without a resource during its change, or while its node is cordoned for it,
// until it works or its node is deleted.
func (r rollout) holdUnmanaged(m Machine, d *Decision) {
	s := r.have.Machines[m.Name]
	node, _ := r.have.nodeNamed(m.NodeName, "")
	lags := versions.Older(node.TalosVersion, m.TalosVersion)

	if m.ConfigDigest == "" && s.Upgraded.Version == "" && !node.HeldBack() && !lags {
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
