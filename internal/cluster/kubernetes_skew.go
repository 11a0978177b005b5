package cluster

import "fmt"

// kubeletSkew is how many minor versions a kubelet may be behind an API server.
const kubeletSkew = 3

// skewed says which part of the cluster, of another resource, has to follow before a
// component of a control plane goes on.
func (u kubernetesUpgrade) skewed(m Machine, c Component) string {
	to, ok := ImageVersion(u.image(m, c))
	if c != KubeAPIServer || !ok {
		return ""
	}

	for _, node := range u.have.Kubernetes.Nodes {
		if minorsBetween(node.KubeletVersion, to) > kubeletSkew {
			return fmt.Sprintf("node %s runs kubelet %s, and kube-apiserver %s supports none that is more than %d minor versions older",
				node.Name, node.KubeletVersion, to, kubeletSkew)
		}

		if u.back && minorsBetween(to, node.KubeletVersion) > 0 {
			return fmt.Sprintf("node %s runs kubelet %s, and no kubelet may be newer than kube-apiserver", node.Name, node.KubeletVersion)
		}

		if api, known := ImageVersion(node.StaticPods[string(KubeAPIServer)].Image); known && minorsBetween(api, to) > 1 {
			return fmt.Sprintf("node %s runs kube-apiserver %s, and API servers of one cluster are at most one minor version apart", node.Name, api)
		}
	}

	return ""
}

// kubeletsSkewed names an API server that is older than what the kubelets of workers are to
// become. Where the control planes are the spec's own they went first, and those beside,
// which may wait for this resource, are not waited for.
func (u kubernetesUpgrade) kubeletsSkewed() string {
	if u.want.OwnsControlPlane() {
		return ""
	}

	for _, node := range u.have.Kubernetes.Nodes {
		if api, known := ImageVersion(node.StaticPods[string(KubeAPIServer)].Image); known && minorsBetween(api, u.target) > 0 {
			return fmt.Sprintf("kube-apiserver of node %s runs %s, and no kubelet may be newer", node.Name, api)
		}
	}

	return ""
}

// joinsWith is the version that a machine joins with when the cluster runs an older one than
// is wanted: that of its oldest API server; else empty.
func joinsWith(want Spec, have Snapshot) string {
	lowest := ""

	note := func(version string, known bool) {
		if known && (lowest == "" || older(version, lowest)) {
			lowest = version
		}
	}

	for _, m := range want.sorted(ControlPlane) {
		if s := have.Machines[m.Name]; s.Access == Member {
			note(ImageVersion(s.Images[KubeAPIServer]))
		}
	}

	for _, node := range have.Kubernetes.Nodes {
		note(ImageVersion(node.StaticPods[string(KubeAPIServer)].Image))
	}

	if older(lowest, want.Kubernetes.Version) {
		return lowest
	}

	return ""
}
