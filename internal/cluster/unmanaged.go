package cluster

import (
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// Machines of an autoscaler, or of an instance group of a cloud, are configured elsewhere and join by themselves.
// They have no resource, so nothing here creates, configures, resets or removes one, and they come and go. They still
// count as etcd members (quorumOf, Unowned) and for the version skew.

// UnmanagedPool is the pool of [Spec.ChangeOnly] in [Spec.Pools]: no user's pool begins with a space.
const UnmanagedPool = " unmanaged"

// Unmanaged are the nodes of machines without a resource, nil while the Kubernetes API does not respond: they are
// outside the spec, and no resource marked them. A node that just joined is one of them until its resource marks it.
func Unmanaged(want Spec, have Snapshot) []kubestate.Node {
	if !have.Kubernetes.Reachable {
		return nil
	}

	known := nodesOf(slices.Concat(want.Machines, want.Removed, want.OtherControlPlanes), have)

	return slices.DeleteFunc(append([]kubestate.Node{}, have.Kubernetes.Nodes...),
		func(n kubestate.Node) bool { return known[n.Name] || have.Kubernetes.Owners[n.Name] != "" })
}

// nodesOf are the names of the nodes of machines, including the recorded ones.
func nodesOf(machines []Machine, have Snapshot) map[string]bool {
	names := map[string]bool{}
	have = have.indexed()

	for _, m := range machines {
		names[m.NodeName] = true

		if node, registered := have.NodeOf(m); registered {
			names[node.Name] = true
		}
	}

	return names
}

// addUnmanaged adds to the model of a plan the observed workers that are not in it, and as machines those of them
// that are changed, with their recorded configuration. Control planes come from [Spec.OtherControlPlanes].
func (s *Snapshot) addUnmanaged(want Spec, recorded map[string]step.MachineState) {
	for _, node := range want.Unmanaged {
		known := slices.ContainsFunc(s.Kubernetes.Nodes, func(n kubestate.Node) bool { return n.Name == node.Name })
		if known || node.ControlPlane || isTaken(want.Machines, node) {
			continue
		}

		s.Kubernetes.Nodes = append(s.Kubernetes.Nodes, node)

		if m, ok := want.Find(UnmanagedName(node.Name)); ok {
			state := recorded[m.Name]
			state.Access, state.Role, state.Stage, state.Ready = step.Member, m.Role, step.StageRunning, true
			state.NodeName, state.TalosVersion = node.Name, node.TalosVersion
			s.Machines[m.Name] = state
		}
	}
}

// isTaken reports whether a node is that of a machine that the spec takes over, by its address.
func isTaken(machines []Machine, node kubestate.Node) bool {
	return slices.ContainsFunc(machines, func(m Machine) bool {
		return slices.ContainsFunc(node.Addresses, func(a string) bool { return sameHost(a, m.Address) })
	})
}

// refuseBeyondUnmanaged refuses API servers that do not support a kubelet as old as that of a machine without a
// resource: unlike those of other resources, no run will upgrade it.
func (u kubernetesUpgrade) refuseBeyondUnmanaged(d *Decision) {
	to, upgrades := "", false

	for _, m := range u.want.sorted(step.ControlPlane) {
		version, _ := kubenames.ImageVersion(m.Images[kubenames.KubeAPIServer])
		to = versions.Oldest(to, version)
		upgrades = upgrades || u.changes(m, kubenames.KubeAPIServer)
	}

	if !upgrades {
		return
	}

	for _, node := range Unmanaged(u.want, u.have) {
		if versions.MinorsBetween(node.KubeletVersion, to) <= kubeletSkew {
			continue
		}

		d.refuse("", fmt.Sprintf("node %s, an unmanaged node, runs kubelet %s, and kube-apiserver %s supports kubelets "+
			"at most %d minor versions older", node.Name, node.KubeletVersion, to, kubeletSkew),
			"Replace its machine with one that has a newer kubelet first, delete the node if its machine is "+
				"gone, or upgrade Kubernetes by fewer minor versions")

		return
	}
}

// UnmanagedName is the name of a machine of [Spec.ChangeOnly], from its node.
func UnmanagedName(node string) string { return "node " + node }

// outgrown is true for a machine without a resource that is not older than wanted, or not the one whose node was
// observed: it never gets another Talos.
func outgrown(m Machine, s step.MachineState) bool {
	return m.unmanaged() && (s.NodeName != m.NodeName || !versions.Older(s.TalosVersion, m.TalosVersion))
}
