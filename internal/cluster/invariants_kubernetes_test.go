package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// kubernetesInvariants: no control plane component changes beside another step. No component changes while a machine
// of the spec is away or busy, or before its machine has the images. While Kubernetes is silent, only an API server
// changes, and not to a newer version.
func kubernetesInvariants(want cluster.Spec, have cluster.Snapshot, d cluster.Decision) []string {
	var broken []string

	for _, op := range d.Steps {
		up, ok := op.(step.UpgradeComponent)
		if !ok {
			continue
		}

		for _, other := range d.Steps {
			if also, ok := other.(step.UpgradeComponent); other != op &&
				(!ok || up.Role == step.ControlPlane || also.Role == step.ControlPlane) {
				broken = append(broken, fmt.Sprintf("%q beside %q", op, other))
			}
		}

		for _, part := range up.Each() {
			broken = append(broken, skewInvariants(have, part)...)
		}

		for _, m := range want.Machines {
			if s := have.Machines[m.Name]; s.Access != step.Member || s.Busy != "" {
				broken = append(broken, fmt.Sprintf("%q while %s is %s %s", op, m.Name, s.Access, s.Busy))
			}
		}

		for _, part := range up.Each() {
			if version, _ := kubenames.ImageVersion(part.Image); part.From != part.Image &&
				part.Component != kubenames.KubeProxy && have.Machines[up.Machine].Pulled != version {
				broken = append(broken, fmt.Sprintf("%q before the images were pulled", op))
			}
		}

		if !have.Kubernetes.Reachable &&
			(up.Component != kubenames.KubeAPIServer || newer(up.Image[len(up.Image)-7:], up.From[len(up.From)-7:])) {
			broken = append(broken, fmt.Sprintf("%q while Kubernetes does not answer", op))
		}
	}

	return broken
}

// skewInvariants: no kubelet gets newer than any API server of the cluster, and no API server older than any kubelet,
// including those of other resources.
func skewInvariants(have cluster.Snapshot, up step.UpgradeComponent) []string {
	var broken []string

	from, _ := kubenames.ImageVersion(up.From)
	to, _ := kubenames.ImageVersion(up.Image)

	for _, node := range have.Kubernetes.Nodes {
		api, known := node.APIServer()

		switch {
		case up.Component == kubenames.Kubelet && known && minor(to) > minor(from) && minor(to) > minor(api):
			broken = append(broken, fmt.Sprintf("%q while kube-apiserver of %s runs %s", up, node.Name, api))
		case up.Component == kubenames.KubeAPIServer && minor(to) < minor(from) && minor(to) < minor(node.KubeletVersion):
			broken = append(broken, fmt.Sprintf("%q while kubelet of %s runs %s", up, node.Name, node.KubeletVersion))
		}
	}

	if oldest := have.Elsewhere.Oldest; oldest != "" && up.Component == kubenames.Kubelet && minor(to) > minor(from) &&
		(minor(to) > minor(oldest) || have.Elsewhere.Undecided) {
		broken = append(broken, fmt.Sprintf("%q while another run starts kube-apiserver %s", up, oldest))
	}

	return broken
}

// randomElsewhere gives other resources a control plane, and runs that work on it.
func randomElsewhere(random *rand.Rand, pick func() string, want *cluster.Spec, have *cluster.Snapshot) {
	want.Shared = random.IntN(2) == 0

	if random.IntN(4) == 0 {
		have.Elsewhere = cluster.Elsewhere{Standing: cluster.Standing{Undecided: random.IntN(3) == 0, Oldest: pick()}}
	}

	if random.IntN(2) == 0 {
		have.Elsewhere.QuietSince = have.Time.Add(-time.Hour)
	}

	if have.Kubernetes.Reachable && random.IntN(4) == 0 {
		api := pick()
		have.Kubernetes.Nodes = append(have.Kubernetes.Nodes, kubestate.Node{
			Name: "elsewhere", Addresses: []string{"10.9.9.9"}, Ready: true, ControlPlane: true, KubeletVersion: pick(),
			StaticPods: map[string]kubestate.StaticPod{
				string(kubenames.KubeAPIServer): {Image: "registry.k8s.io/kube-apiserver:" + api, Ready: true},
			},
		})
	}
}

// randomKubernetesState gives machines any images of three minor versions, and stops some of their pods.
func randomKubernetesState(random *rand.Rand, want *cluster.Spec, have *cluster.Snapshot) {
	path := []string{"v1.34.2", "v1.35.4", "v1.36.3"}
	pick := func() string { return path[random.IntN(len(path))] }

	want.Kubernetes = cluster.KubernetesSpec{Version: pick(), Via: path[1:2],
		Manifests: []string{"", pick()}[random.IntN(2)]}
	calm, ill, at := random.IntN(3) > 0, random.IntN(2), pick() // otherwise almost nothing would be upgraded
	pulled := []string{"", want.Kubernetes.Version, want.Kubernetes.Version, path[1]}[random.IntN(4)]

	if calm {
		have.Etcd.Known, have.Etcd.Members, have.Kubernetes.Reachable = true, nil, random.IntN(8) > 0
	}

	for i, m := range want.Machines {
		want.Machines[i].Images = imagesOf(m.Role, want.Kubernetes.Version)
		s := have.Machines[m.Name]

		if calm {
			s = step.MachineState{
				Access: step.Member, Stage: step.StageRunning, Ready: true, EtcdService: step.ServiceRunning,
				ConfigDigest: "new",
				TalosVersion: m.TalosVersion, NodeName: m.Name, Meta: m.Meta,
				Run: step.Run{Busy: []string{"", "in progress"}[max(0, random.IntN(100)-98)]},
			}
			if ill*random.IntN(8) == 1 {
				s.Ready, s.Unmet = false, []string{"staticPods: kube-system/kube-apiserver not ready"}
			}
		}

		s.Images, s.Pulled = imagesOf(m.Role, at), pulled
		if ill*random.IntN(4) == 1 {
			s.Images, s.Pulled = imagesOf(m.Role, pick()), pick()
		}

		have.Machines[m.Name] = s

		if calm {
			randomNode(random, m, s, have)
		}
	}

	if calm {
		randomElsewhere(random, pick, want, have)
	}
}

// randomNode is the node and the etcd member of a machine in the cluster.
func randomNode(random *rand.Rand, m cluster.Machine, s step.MachineState, have *cluster.Snapshot) {
	version, _ := kubenames.ImageVersion(s.Images[kubenames.Kubelet])
	node := kubestate.Node{
		Name: m.Name, Addresses: []string{m.Address}, Ready: s.Ready, ControlPlane: m.Role == step.ControlPlane,
		KubeletVersion: version,
	}

	if node.ControlPlane {
		have.Etcd.Members = append(have.Etcd.Members,
			etcdstate.Member{ID: m.Name, Name: m.Name, PeerURLs: []string{"https://" + m.Address + ":2380"}})
		node.StaticPods = map[string]kubestate.StaticPod{}

		for _, c := range staticPods {
			node.StaticPods[string(c)] = kubestate.StaticPod{Image: s.Images[c], Ready: s.Ready}
		}
	}

	if have.Kubernetes.Reachable {
		have.Kubernetes.Nodes = append(have.Kubernetes.Nodes, node)
	}
}
