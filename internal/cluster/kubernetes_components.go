package cluster

import (
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// image is the one that a component of a machine has to reach now; empty where it has none,
// or nobody knows what it has.
func (u kubernetesUpgrade) image(m Machine, c kubenames.Component) string {
	if u.have.Machines[m.Name].Images == nil || u.have.Machines[m.Name].Access != step.Member {
		return ""
	}

	if c == kubenames.Kubelet && u.keepsKubelet(m) {
		return u.has(m, c)
	}

	return kubenames.ImageAt(m.Images[c], u.want.Kubernetes.Version, u.target)
}

// has is the image of a component in the configuration that a machine has.
func (u kubernetesUpgrade) has(m Machine, c kubenames.Component) string {
	return u.have.Machines[m.Name].Images[c]
}

// anywhere reports whether something is so of any component on any machine.
func (u kubernetesUpgrade) anywhere(is func(Machine, kubenames.Component) bool) bool {
	return slices.ContainsFunc(u.want.all(), func(m Machine) bool {
		return slices.ContainsFunc(u.order(), func(c kubenames.Component) bool { return is(m, c) })
	})
}

// lacks reports whether a component of a machine has to change for the version that is
// being reached, or is not seen to run with what it was given.
func (u kubernetesUpgrade) lacks(m Machine, c kubenames.Component) bool {
	image := u.image(m, c)
	if image == "" {
		return false
	}

	if !u.final && image == m.Images[c] && image == u.has(m, c) {
		return false // it is as wanted whatever the version
	}

	if u.has(m, c) == image {
		_, registered := u.have.NodeOf(m)

		return registered && !u.runs(m, c, image) && !u.unseen(m, c)
	}

	if u.final && !u.back {
		return true
	}

	version, known := u.version(m, c)
	if u.back {
		return known && versions.Older(u.target, version)
	}

	return known && versions.MinorsBetween(version, u.target) > 0
}

// unseen reports whether nothing can show that a component runs before the API server of its
// machine, through which its kubelet tells, is taken back.
func (u kubernetesUpgrade) unseen(m Machine, c kubenames.Component) bool {
	return u.back && c != kubenames.KubeAPIServer && u.lacks(m, kubenames.KubeAPIServer) &&
		u.ails(m, kubenames.KubeAPIServer)
}

// newer reports whether any component is newer than wanted.
func (u kubernetesUpgrade) newer() bool {
	return u.anywhere(func(m Machine, c kubenames.Component) bool {
		if image := u.image(m, c); image == "" || image == u.has(m, c) {
			return false
		}

		version, known := u.version(m, c)

		return known && versions.Older(u.target, version)
	})
}

// version is that of a component: by its image, else, where the image does not say or the
// configuration leaves it to Talos, by what is seen to run.
func (u kubernetesUpgrade) version(m Machine, c kubenames.Component) (version string, known bool) {
	image := u.has(m, c)
	if version, known = kubenames.ImageVersion(image); known {
		return version, true
	}

	node, ok := u.have.NodeOf(m)

	switch {
	case !ok:
		return "", false
	case c == kubenames.Kubelet:
		return kubenames.ReleaseOf(node.KubeletVersion)
	case image != "":
		return "", false
	default:
		return kubenames.ImageVersion(node.StaticPods[string(c)].Image)
	}
}

// runs reports whether Kubernetes shows a component with its image, or any where Talos
// chooses it. kube-proxy runs elsewhere, and where nobody asked the configuration is taken at
// its word.
func (u kubernetesUpgrade) runs(m Machine, c kubenames.Component, image string) bool {
	node, ok := u.have.NodeOf(m)

	switch {
	case c == kubenames.KubeProxy:
		return true
	case !ok:
		return !u.have.Kubernetes.Reachable
	case c == kubenames.Kubelet:
		version, known := kubenames.ImageVersion(image)
		running, told := kubenames.ReleaseOf(node.KubeletVersion)

		return !known || !told || running == version
	case node.StaticPods == nil:
		return true
	default:
		pod := node.StaticPods[string(c)]

		return pod.Ready && (image == "" || pod.Image == image)
	}
}

// ails reports whether Kubernetes shows that a component does not run with the image that
// the machine's configuration has.
func (u kubernetesUpgrade) ails(m Machine, c kubenames.Component) bool {
	return !u.runs(m, c, u.has(m, c))
}

// cures reports whether a machine that does not work may do so again after the upgrade: a
// component that does not run is still to change.
func (u kubernetesUpgrade) cures(m Machine) bool {
	return slices.ContainsFunc(u.order(), func(c kubenames.Component) bool { return u.lacks(m, c) && u.ails(m, c) })
}

// componentsLeft reports whether any component is not through with the version that is being
// reached. Once all have their images, one that is only not ready is no matter of an upgrade:
// its machine has not settled, as after any boot.
func (u kubernetesUpgrade) componentsLeft() bool {
	return u.anywhere(func(m Machine, c kubenames.Component) bool {
		return u.lacks(m, c) && (!u.final || u.changes(m, c) || u.showsOther(m, c))
	})
}

// showsOther reports whether Kubernetes shows a component with another image than the
// machine's configuration has.
func (u kubernetesUpgrade) showsOther(m Machine, c kubenames.Component) bool {
	node, _ := u.have.NodeOf(m)
	pod, exists := node.StaticPods[string(c)]

	return c == kubenames.Kubelet || exists && pod.Image != u.has(m, c)
}

// changes reports whether a component gets another image, rather than being waited for.
func (u kubernetesUpgrade) changes(m Machine, c kubenames.Component) bool {
	return u.lacks(m, c) && u.has(m, c) != u.image(m, c)
}
