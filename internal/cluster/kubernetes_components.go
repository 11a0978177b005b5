package cluster

import (
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// kubernetesUpgrade is one round of a Kubernetes upgrade.
type kubernetesUpgrade struct {
	want   Spec
	have   Snapshot
	policy Policy
	// target is the current target version, and final whether it is the wanted one. back is true while components that
	// are newer than wanted are downgraded.
	target      string
	final, back bool
}

// image is the next image of a component on a machine; empty where it has none, or where its current one is unknown.
func (u kubernetesUpgrade) image(m Machine, c kubenames.Component) string {
	if u.have.Machines[m.Name].Images == nil || u.have.Machines[m.Name].Access != step.Member {
		return ""
	}

	if c == kubenames.Kubelet && u.keepsKubelet(m) {
		return u.has(m, c)
	}

	return kubenames.ImageAt(m.Images[c], u.want.Kubernetes.Version, u.target)
}

// has is the image of a component in the machine's configuration.
func (u kubernetesUpgrade) has(m Machine, c kubenames.Component) string {
	return u.have.Machines[m.Name].Images[c]
}

// anywhere reports whether is holds for any component on any machine.
func (u kubernetesUpgrade) anywhere(is func(Machine, kubenames.Component) bool) bool {
	return slices.ContainsFunc(u.want.all(), func(m Machine) bool {
		return slices.ContainsFunc(u.order(), func(c kubenames.Component) bool { return is(m, c) })
	})
}

// lacks reports whether a component of a machine must change for the current target version, or is not observed to
// run with its image.
func (u kubernetesUpgrade) lacks(m Machine, c kubenames.Component) bool {
	image := u.image(m, c)
	if image == "" {
		return false
	}

	if !u.final && image == m.Images[c] && image == u.has(m, c) {
		return false // it is as wanted, regardless of the version
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

// unseen reports whether a component cannot be observed before the API server of its machine, through which its
// kubelet reports, is downgraded.
func (u kubernetesUpgrade) unseen(m Machine, c kubenames.Component) bool {
	return u.back && c != kubenames.KubeAPIServer && u.lacks(m, kubenames.KubeAPIServer) &&
		u.broken(m, kubenames.KubeAPIServer)
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

// version is that of a component: from its image, or, where the image does not show it or Talos chooses the image,
// the observed one.
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

// runs reports whether Kubernetes shows a component with its image, or with any where Talos chooses it. kube-proxy
// runs elsewhere. Where it was not read, the configuration counts.
func (u kubernetesUpgrade) runs(m Machine, c kubenames.Component, image string) bool {
	node, ok := u.have.NodeOf(m)

	switch {
	case c == kubenames.KubeProxy:
		return true
	case !ok:
		return !u.have.Kubernetes.Reachable
	case c == kubenames.Kubelet:
		version, known := kubenames.ImageVersion(image)
		running, valid := kubenames.ReleaseOf(node.KubeletVersion)

		return !known || !valid || running == version
	case node.StaticPods == nil:
		return true
	default:
		pod := node.StaticPods[string(c)]

		return pod.Ready && (image == "" || pod.Image == image)
	}
}

// broken reports whether Kubernetes shows that a component does not run with its configured image.
func (u kubernetesUpgrade) broken(m Machine, c kubenames.Component) bool {
	return !u.runs(m, c, u.has(m, c))
}

// repairs reports whether the upgrade may repair a machine that does not work: a component that does not run will still
// change.
func (u kubernetesUpgrade) repairs(m Machine) bool {
	return slices.ContainsFunc(u.order(), func(c kubenames.Component) bool { return u.lacks(m, c) && u.broken(m, c) })
}

// componentsLeft reports whether any component is unfinished for the current target version. Once all have their
// images, one that is only not ready does not count: its machine has not settled, as after any boot.
func (u kubernetesUpgrade) componentsLeft() bool {
	return u.anywhere(func(m Machine, c kubenames.Component) bool {
		return u.lacks(m, c) && (!u.final || u.changes(m, c) || u.showsOther(m, c))
	})
}

// showsOther reports whether Kubernetes shows a component with another image than the configured one.
func (u kubernetesUpgrade) showsOther(m Machine, c kubenames.Component) bool {
	node, _ := u.have.NodeOf(m)
	pod, exists := node.StaticPods[string(c)]

	return c == kubenames.Kubelet || exists && pod.Image != u.has(m, c)
}

// changes reports whether a component gets another image, instead of only being waited for.
func (u kubernetesUpgrade) changes(m Machine, c kubenames.Component) bool {
	return u.lacks(m, c) && u.has(m, c) != u.image(m, c)
}

// order is the order in which components change. A downgrade reverses it, so that no component is ever newer than the
// API server it uses.
func (u kubernetesUpgrade) order() []kubenames.Component {
	order := kubenames.Components()
	if u.back {
		slices.Reverse(order)
	}

	return order
}

// keepsKubelet reports whether the kubelet of a machine stays, because another one would need a drain of its node.
func (u kubernetesUpgrade) keepsKubelet(m Machine) bool { return m.Locked && u.policy.DrainForKubelet }

// runs reports whether a machine runs a Talos; an empty schematic matches any.
func runs(s step.MachineState, version, schematic string) bool {
	return s.TalosVersion == version && (schematic == "" || s.Schematic == schematic)
}
