package machineset

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/manifests"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// The Kubernetes versions of a resource: the wanted one, the configured images of its machines, and the versions that
// were observed to run.

// RunningOn is the Kubernetes versions that run on a node, by component. An image without a version does not show
// what runs.
func RunningOn(node kubestate.Node) map[kubenames.Component]string {
	running := map[kubenames.Component]string{}

	if node.KubeletVersion != "" {
		running[kubenames.Kubelet] = node.KubeletVersion
	}

	for name, pod := range node.StaticPods {
		if version, ok := kubenames.ImageVersion(pod.Image); ok && kubenames.Component(name).StaticPod() {
			running[kubenames.Component(name)] = version
		}
	}

	return running
}

// runningOtherwise is the versions that run where the images of a machine name others.
func runningOtherwise(images kubenames.Images, running map[kubenames.Component]string) map[kubenames.Component]string {
	other := map[kubenames.Component]string{}

	for c, version := range running {
		release, valid := kubenames.ReleaseOf(version)
		if named, known := kubenames.ImageVersion(images[c]); valid && known && release != named {
			other[c] = release
		}
	}

	return other
}

// Assume is the cluster that a forecast begins with: the recorded state, with the running versions where they differ
// from the images.
func (r Record) Assume(want cluster.Spec) cluster.Snapshot {
	have := cluster.Assume(want, r.Machines)

	for _, m := range want.Removed {
		if r.Seen[m.Name].Drift.Has(record.NotOnHost) { // one that stays is recreated, and then waits
			s := have.Machines[m.Name]
			s.Access, s.Stage = step.Gone, ""
			have.Machines[m.Name] = s
		}
	}

	for _, m := range want.Machines {
		drift := r.Seen[m.Name].Drift
		have.Etcd.GoesBack = cmp.Or(have.Etcd.GoesBack, drift.First(record.EtcdGoesBack).Wanted)

		if drift.Has(record.Unproven) {
			s := have.Machines[m.Name]
			s.UUID = ""
			have.Machines[m.Name] = s
		}

		if keys := drift.MetaKeys(); len(keys) > 0 {
			s := have.Machines[m.Name]
			s.Meta = maps.Clone(s.Meta)
			maps.DeleteFunc(s.Meta, func(key uint8, _ string) bool { return slices.Contains(keys, key) })
			have.Machines[m.Name] = s
		}

		if drift.Has(record.NoNode) {
			forgetNode(&have, m)

			continue
		}

		images := r.Machines[m.Name].Images

		other := runningOtherwise(images, r.Seen[m.Name].Running)
		if len(other) == 0 || r.Machines[m.Name].Access != step.Member {
			continue
		}

		node, _ := have.NodeOf(m)

		i := slices.IndexFunc(have.Kubernetes.Nodes, func(n kubestate.Node) bool { return n.Name == node.Name })
		if i < 0 {
			continue
		}

		have.Kubernetes.Nodes[i].KubeletVersion = cmp.Or(other[kubenames.Kubelet], node.KubeletVersion)

		if m.Role == step.ControlPlane {
			have.Kubernetes.Nodes[i].StaticPods = podsOf(images, other)
		}
	}

	return have
}

// forgetNode removes the node of a machine that was observed without one.
func forgetNode(have *cluster.Snapshot, m cluster.Machine) {
	node, _ := have.NodeOf(m)
	have.Kubernetes.Nodes = slices.DeleteFunc(have.Kubernetes.Nodes,
		func(n kubestate.Node) bool { return n.Name == node.Name })

	state := have.Machines[m.Name]
	state.NodeMissing = true
	have.Machines[m.Name] = state
}

// podsOf are the pods of a control plane in the versions of its images, except those that run in other versions.
func podsOf(images kubenames.Images, other map[kubenames.Component]string) map[string]kubestate.StaticPod {
	pods := map[string]kubestate.StaticPod{}

	for _, c := range kubenames.StaticPods() {
		pod := kubestate.StaticPod{Image: images[c], Ready: true}

		if named, known := kubenames.ImageVersion(images[c]); known && other[c] != "" {
			pod.Image = kubenames.ImageAt(images[c], named, other[c])
		}

		pods[string(c)] = pod
	}

	return pods
}

// compareVersions orders Kubernetes versions; an invalid one comes first.
func compareVersions(a, b string) int {
	older, _ := machineconfig.ParseKubernetesVersion(a)
	newer, _ := machineconfig.ParseKubernetesVersion(b)

	return older.Compare(newer.Version)
}

// componentsOf lists the components of a map by name.
func componentsOf[M ~map[kubenames.Component]string](m M) []kubenames.Component {
	return slices.Sorted(maps.Keys(m))
}

// kubernetes is the wanted Kubernetes version, with what is known about the bootstrap manifests.
func (p Set) kubernetes(recorded PriorState) cluster.KubernetesSpec {
	to, err := machineconfig.ParseKubernetesVersion(p.Settings.KubernetesVersion)
	if err != nil {
		return cluster.KubernetesSpec{}
	}

	spec := cluster.KubernetesSpec{Version: to.String(), Manifests: recorded.Manifests, Changed: recorded.changedManifests}
	for _, release := range machineconfig.KubernetesReleases(to, p.Changes.KubernetesVia) {
		if release.LT(to.Version) {
			spec.Via = append(spec.Via, release.String())
		}
	}

	return spec
}

// changedManifests are the sources of bootstrap manifests that differ between p and prior, whose manifests the
// cluster has. Both use their first control plane, as a sync does. None where that is unknown.
func (p Set) changedManifests(prior Set) []string {
	planes, former := p.controlPlanes(), prior.controlPlanes()
	if (p.Unknown | prior.Unknown).Has(UnknownConfiguration) || len(planes) == 0 || len(former) == 0 {
		return nil
	}

	if reflect.DeepEqual(p.Settings, prior.Settings) &&
		reflect.DeepEqual(p.Machines[planes[0]].Config, prior.Machines[former[0]].Config) {
		return nil
	}

	now, ok := p.manifestSources(planes[0])
	before, known := prior.manifestSources(former[0])

	if !ok || !known {
		return nil
	}

	return manifests.Changes(before, now)
}

// manifestSources are the sources of a control plane's manifests. They need no secrets.
func (p Set) manifestSources(name string) ([]manifests.Source, bool) {
	p.Machines = map[string]Machine{name: p.Machines[name]}

	config, rendered := p.filesOfCreate().Configs[name]
	if !rendered {
		return nil, false // the validation reports the error
	}

	sources, err := manifests.Of(config)

	return sources, err == nil
}

// ManifestsRunning is the version of the oldest API server of a cluster that another tool or resource created, which
// is assumed to be that of its bootstrap manifests; empty when it is unknown.
func ManifestsRunning(want cluster.Spec, have cluster.Snapshot) string {
	var versions []string

	for _, m := range want.Machines {
		if version, ok := kubenames.ImageVersion(have.Machines[m.Name].Images[kubenames.KubeAPIServer]); ok &&
			m.Role == step.ControlPlane {
			versions = append(versions, version)
		}
	}

	if len(versions) == 0 {
		return ""
	}

	return slices.MinFunc(versions, compareVersions)
}
