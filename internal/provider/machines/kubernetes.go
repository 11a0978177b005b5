package machines

import (
	"cmp"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// The versions of Kubernetes of a resource: the one that is wanted, the images that its
// machines are given, and what was seen to run.

// runningOn is the versions of Kubernetes that run on a node, by component. An image that
// names no version says nothing about what runs.
func runningOn(node cluster.Node) map[cluster.Component]string {
	running := map[cluster.Component]string{}

	if node.KubeletVersion != "" {
		running[cluster.Kubelet] = node.KubeletVersion
	}

	for name, pod := range node.StaticPods {
		if version, ok := cluster.ImageVersion(pod.Image); ok && cluster.Component(name).StaticPod() {
			running[cluster.Component(name)] = version
		}
	}

	return running
}

// runningOtherwise is the versions that run where the images of a machine name others.
func runningOtherwise(images cluster.Images, running map[cluster.Component]string) map[cluster.Component]string {
	other := map[cluster.Component]string{}

	for c, version := range running {
		release, told := cluster.ReleaseOf(version)
		if named, known := cluster.ImageVersion(images[c]); told && known && release != named {
			other[c] = release
		}
	}

	return other
}

// assume is the cluster that a forecast begins with: as state knows it, and with what runs
// where that is not what the images say.
func (r PriorState) assume(want cluster.Spec) cluster.Snapshot {
	have := cluster.Assume(want, r.Machines)

	for _, m := range want.Machines {
		images := r.Machines[m.Name].Images

		other := runningOtherwise(images, r.kubernetes[m.Name])
		if len(other) == 0 || r.Machines[m.Name].Access != cluster.Member {
			continue
		}

		node, _ := have.NodeOf(m)

		i := slices.IndexFunc(have.Kubernetes.Nodes, func(n cluster.Node) bool { return n.Name == node.Name })
		if i < 0 {
			continue
		}

		have.Kubernetes.Nodes[i].KubeletVersion = cmp.Or(other[cluster.Kubelet], node.KubeletVersion)

		if m.Role == cluster.ControlPlane {
			have.Kubernetes.Nodes[i].StaticPods = podsOf(images, other)
		}
	}

	return have
}

// podsOf is the pods of a control plane that runs with its images, but for those that run in
// other versions.
func podsOf(images cluster.Images, other map[cluster.Component]string) map[string]cluster.StaticPod {
	pods := map[string]cluster.StaticPod{}

	for _, c := range []cluster.Component{cluster.KubeAPIServer, cluster.KubeControllerManager, cluster.KubeScheduler} {
		pod := cluster.StaticPod{Image: images[c], Ready: true}

		if named, known := cluster.ImageVersion(images[c]); known && other[c] != "" {
			pod.Image = cluster.ImageAt(images[c], named, other[c])
		}

		pods[string(c)] = pod
	}

	return pods
}

// ImagesIn reads the images of Kubernetes from a configuration.
func ImagesIn(config []byte) (cluster.Images, error) {
	named, err := machineconfig.Images(config)
	if err != nil {
		return nil, err
	}

	images := cluster.Images{}
	for name, image := range named {
		images[cluster.Component(name)] = image
	}

	return images, nil
}

// withImages is a configuration with other images of Kubernetes.
func withImages(config []byte, images cluster.Images) ([]byte, error) {
	named := map[string]string{}
	for c, image := range images {
		named[string(c)] = image
	}

	return machineconfig.WithImages(config, named)
}

// compareVersions orders versions of Kubernetes; what is none goes first.
func compareVersions(a, b string) int {
	older, _ := machineconfig.ParseKubernetesVersion(a)
	newer, _ := machineconfig.ParseKubernetesVersion(b)

	return older.Compare(newer.Version)
}

// componentsOf lists the components of a map in the order of their names.
func componentsOf[M ~map[cluster.Component]string](m M) []cluster.Component {
	return slices.Sorted(maps.Keys(m))
}

// componentMap is texts by component as state has them; null when nobody knows.
func componentMap[M ~map[cluster.Component]string](m M) types.Map {
	if m == nil {
		return types.MapNull(types.StringType)
	}

	values := map[string]attr.Value{}
	for c, text := range m {
		values[string(c)] = types.StringValue(text)
	}

	return types.MapValueMust(types.StringType, values)
}

// byComponent reads what componentMap wrote; nil for null.
func byComponent(m types.Map) map[cluster.Component]string {
	if m.IsNull() || m.IsUnknown() {
		return nil
	}

	texts := map[cluster.Component]string{}

	for c, value := range m.Elements() {
		if text, ok := value.(types.String); ok {
			texts[cluster.Component(c)] = text.ValueString()
		}
	}

	return texts
}

// kubernetes is the version that the cluster is to run. manifests is the one whose bootstrap
// manifests it has.
func (p MachineSet) kubernetes(manifests string) cluster.KubernetesSpec {
	to, err := machineconfig.ParseKubernetesVersion(p.Settings.KubernetesVersion)
	if err != nil {
		return cluster.KubernetesSpec{}
	}

	spec := cluster.KubernetesSpec{Version: to.String(), Manifests: manifests}
	for _, release := range machineconfig.KubernetesReleases(to, p.changes.kubernetesVia) {
		if release.LT(to.Version) {
			spec.Via = append(spec.Via, release.String())
		}
	}

	return spec
}

// manifestsRunning is the version of the oldest API server of a cluster that somebody else
// has made, whose bootstrap manifests it is taken to have.
func manifestsRunning(want cluster.Spec, have cluster.Snapshot) types.String {
	var versions []string

	for _, m := range want.Machines {
		if version, ok := cluster.ImageVersion(have.Machines[m.Name].Images[cluster.KubeAPIServer]); ok && m.Role == cluster.ControlPlane {
			versions = append(versions, version)
		}
	}

	if len(versions) == 0 {
		return types.StringNull()
	}

	return types.StringValue(slices.MinFunc(versions, compareVersions))
}
