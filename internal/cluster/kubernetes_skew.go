package cluster

import (
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// kubeletSkew is how many minor versions a kubelet may be behind an API server.
const kubeletSkew = 3

// skewed says which part of the cluster, in another resource, must follow before a component of a control plane
// continues.
func (u kubernetesUpgrade) skewed(m Machine, c kubenames.Component) string {
	to, ok := kubenames.ImageVersion(u.image(m, c))
	if c != kubenames.KubeAPIServer || !ok {
		return ""
	}

	for _, node := range u.have.Kubernetes.Nodes {
		if versions.MinorsBetween(node.KubeletVersion, to) > kubeletSkew {
			return fmt.Sprintf("node %s runs kubelet %s, and kube-apiserver %s supports kubelets at most %d minor versions "+
				"older; if the node belongs to another resource that waits for this one, upgrade %d minor versions at a time",
				node.Name,
				node.KubeletVersion, to, kubeletSkew, kubeletSkew)
		}

		if api, known := node.APIServer(); known && versions.MinorsBetween(api, to) > 1 {
			return fmt.Sprintf("node %s runs kube-apiserver %s, and API servers of one cluster are at most one minor version "+
				"apart", node.Name, api)
		}
	}

	return ""
}

// LeftBehind are the nodes, except those of the given machines, whose kubelets are too old for a version of
// kube-apiserver.
func LeftBehind(machines []Machine, nodes []kubestate.Node, version string) []kubestate.Node {
	have := Snapshot{Machines: map[string]step.MachineState{}, Kubernetes: kubestate.State{Nodes: nodes}}
	ours := map[string]bool{}

	for _, m := range machines {
		have.Machines[m.Name] = step.MachineState{NodeName: m.NodeName}
		if node, ok := have.NodeOf(m); ok {
			ours[node.Name] = true
		}
	}

	return slices.DeleteFunc(slices.Clone(nodes), func(n kubestate.Node) bool {
		return ours[n.Name] || versions.MinorsBetween(n.KubeletVersion, version) <= kubeletSkew
	})
}

// kubeletSkewed names an API server of the cluster, of any resource, that is older than the next kubelet version of a
// machine. An image without a version, such as one pinned by its digest, counts as the current target version.
func (u kubernetesUpgrade) kubeletSkewed(m Machine) string {
	if !u.changes(m, kubenames.Kubelet) || u.kubeletGoesBack(m) {
		return ""
	}

	to, known := kubenames.ImageVersion(u.image(m, kubenames.Kubelet))
	if !known {
		to = u.target
	}

	if older := olderAPIServer(u.have, to); older != "" {
		return older
	}

	others := u.have.Elsewhere

	switch {
	case versions.MinorsBetween(others.Oldest, to) > 0:
		return fmt.Sprintf("another resource starts kube-apiserver %s, and no kubelet may be newer", others.Oldest)
	case others.Undecided:
		return "another resource decides which kube-apiserver it starts"
	default:
		return ""
	}
}

// olderAPIServer names an API server of the cluster, of any resource, that is older than a kubelet version.
func olderAPIServer(have Snapshot, kubelet string) string {
	for _, node := range have.Kubernetes.Nodes {
		if api, known := node.APIServer(); known && versions.MinorsBetween(api, kubelet) > 0 {
			return fmt.Sprintf("kube-apiserver of node %s runs %s, and no kubelet may be newer", node.Name, api)
		}
	}

	return ""
}

// kubeletGoesBack reports whether the kubelet of a machine gets an older version, or another image of its version.
func (u kubernetesUpgrade) kubeletGoesBack(m Machine) bool {
	from, known := u.version(m, kubenames.Kubelet)
	to, ok := kubenames.ImageVersion(u.image(m, kubenames.Kubelet))

	return known && ok && versions.MinorsBetween(from, to) <= 0
}

// apiServerSkewed names a kubelet, of any resource, that is newer than the version to which an API server is
// downgraded. A node still shows the former kubelet where the API server of its own machine does not run: that one is
// downgraded without an observation.
func (u kubernetesUpgrade) apiServerSkewed(m Machine, c kubenames.Component) string {
	to, known := kubenames.ImageVersion(u.image(m, c))
	if c != kubenames.KubeAPIServer || !u.back || !known || !u.changes(m, c) {
		return ""
	}

	own, _ := u.have.NodeOf(m)
	unseen := u.unseen(m, kubenames.Kubelet) && !u.changes(m, kubenames.Kubelet)

	for _, node := range u.have.Kubernetes.Nodes {
		if versions.MinorsBetween(to, node.KubeletVersion) > 0 && !(unseen && node.Name == own.Name) {
			return fmt.Sprintf("node %s runs kubelet %s, and no kubelet may be newer than kube-apiserver", node.Name,
				node.KubeletVersion)
		}
	}

	return ""
}

// joinsWith is the default version in the configuration of a machine that joins while the cluster runs an older one
// than is wanted; otherwise empty.
func joinsWith(want Spec, have Snapshot) string {
	if running := KubernetesRunning(want, have); versions.Older(running, want.Kubernetes.Version) {
		return running
	}

	return ""
}

// KubernetesRunning is the version of the oldest API server of a cluster, from the configurations of the spec's own
// control planes and the pods on all of them; empty when unknown.
func KubernetesRunning(want Spec, have Snapshot) string {
	lowest := ""

	for _, m := range want.sorted(step.ControlPlane) {
		if s := have.Machines[m.Name]; s.Access == step.Member {
			version, _ := kubenames.ImageVersion(s.Images[kubenames.KubeAPIServer])
			lowest = versions.Oldest(lowest, version)
		}
	}

	for _, node := range have.Kubernetes.Nodes {
		version, _ := node.APIServer()
		lowest = versions.Oldest(lowest, version)
	}

	return lowest
}
