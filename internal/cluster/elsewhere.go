package cluster

import (
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// The control planes of one cluster may belong to several resources, each with its own run. No kubelet may be newer
// than any kube-apiserver of its cluster (Kubernetes version skew policy), and with KubePrism a kubelet talks to all
// of them (Talos 1.13, secrets/root.go). So a kubelet waits for the API servers of other resources while their runs
// work. Once none does, it stays behind, and the next apply continues. Under -parallelism=1, or with depends_on
// between the resources, the other run begins only after this one ends.

// And combines two standings.
func (s Standing) And(other Standing) Standing {
	return Standing{
		Undecided: s.Undecided || other.Undecided, Moves: s.Moves || other.Moves,
		Oldest: versions.Oldest(s.Oldest, other.Oldest),
	}
}

// quiet reports whether no other run of this process will move API servers or kubelets. The resources of one apply
// begin shortly after each other, not at the same time.
func (s Snapshot) quiet(p Policy) bool {
	since := s.Elsewhere.QuietSince

	return !since.IsZero() && s.Time.Sub(since) >= p.OthersGrace
}

// awaits names the API server or kubelet of another resource that a change waits for.
func (u kubernetesUpgrade) awaits(m Machine, c kubenames.Component) string {
	if c == kubenames.Kubelet {
		return u.kubeletSkewed(m)
	}

	return u.apiServerSkewed(m, c)
}

// staysBehind reports whether a change is left to a later run, because no run will move what it waits for.
func (u kubernetesUpgrade) staysBehind(m Machine, c kubenames.Component) bool {
	return u.want.Shared && u.have.quiet(u.policy) && !u.have.Elsewhere.Undecided && u.awaits(m, c) != ""
}

// leaveBehind records the components of a stage that stay behind on machines.
func (u kubernetesUpgrade) leaveBehind(machines []Machine, stage []kubenames.Component, d *Decision) {
	for _, c := range stage {
		for _, m := range machines {
			if u.lacks(m, c) && u.staysBehind(m, c) {
				d.Behind = append(d.Behind, step.Kept{Step: u.step(m, c), Reason: u.awaits(m, c)})
			}
		}
	}
}

// holdForOthers holds a change that waits for other runs, which may need the lock meanwhile.
func (d *Decision) holdForOthers(machine, format string, args ...any) {
	d.Yields = true
	d.awaited = append(d.awaited, machine)
	d.hold(machine, format, args...)
}

// onlyAwaits reports whether the rest of a decision only waits for other runs.
func (d Decision) onlyAwaits() bool {
	return len(d.Steps) == 0 &&
		!slices.ContainsFunc(d.Holds, func(h step.Hold) bool { return !slices.Contains(d.awaited, h.Machine) })
}

// APIServers are the kube-apiserver versions on the control planes of a run, by machine: those in their
// configurations, or from a step that begins now. A run keeps them, because a booting machine shows none.
func APIServers(want Spec, have Snapshot, d Decision) map[string]string {
	found := map[string]string{}

	for _, m := range want.sorted(step.ControlPlane) {
		s := have.Machines[m.Name]
		version, known := kubenames.ImageVersion(s.Images[kubenames.KubeAPIServer])
		if known && s.Access == step.Member && s.Busy == "" {
			found[m.Name] = version
		}
	}

	for _, op := range d.Steps {
		switch s := op.(type) {
		case step.ApplyConfig:
			if m, _ := want.Find(s.Machine); s.Access == step.Maintenance && s.Role == step.ControlPlane {
				found[s.Machine], _ = kubenames.ImageVersion(imagesToJoin(want, m, s.Kubernetes)[kubenames.KubeAPIServer])
			}
		case step.UpgradeComponent:
			if version, known := kubenames.ImageVersion(s.Image); known && s.Component == kubenames.KubeAPIServer {
				found[s.Machine] = versions.Oldest(found[s.Machine], version)
			}
		}
	}

	return found
}

// imagesToJoin are the images in the configuration of a machine. version is that of the cluster where it is older
// than the wanted one, otherwise empty.
func imagesToJoin(want Spec, m Machine, version string) kubenames.Images {
	if version == "" {
		return m.Images
	}

	return m.Images.At(want.Kubernetes.Version, version)
}

// StandingOf is the Standing of a run after a decision, with the [APIServers] that it found since it began.
func StandingOf(want Spec, have Snapshot, d Decision, apiServers map[string]string) Standing {
	s := Standing{Moves: movesOthers(want, have, apiServers) && !(d.onlyAwaits() && idle(want, have))}

	for _, version := range apiServers {
		s.Oldest = versions.Oldest(s.Oldest, version)
	}

	return s
}

// StartsAPIServers reports whether a run may still start an API server with an older version than the current one: a
// control plane joins, or is downgraded.
func StartsAPIServers(want Spec, have Snapshot) bool {
	return slices.ContainsFunc(want.sorted(step.ControlPlane), func(m Machine) bool {
		s := have.Machines[m.Name]
		version, _ := kubenames.ImageVersion(s.Images[kubenames.KubeAPIServer])

		return s.Access != step.Member || versions.Older(want.Kubernetes.Version, version)
	})
}

// movesOthers reports whether a run must upgrade or remove API servers, or downgrade kubelets.
func movesOthers(want Spec, have Snapshot, apiServers map[string]string) bool {
	if len(want.removed(step.ControlPlane)) > 0 {
		return true
	}

	return slices.ContainsFunc(want.all(), func(m Machine) bool {
		s := have.Machines[m.Name]
		if s.Access != step.Member || m.Images == nil || s.Images == nil {
			return versions.Older(apiServers[m.Name], want.Kubernetes.Version) // it boots, and is upgraded then
		}

		kubelet, _ := kubenames.ImageVersion(s.Images[kubenames.Kubelet])
		wanted, _ := kubenames.ImageVersion(m.Images[kubenames.Kubelet])

		return m.Role == step.ControlPlane && !apiServerAsWanted(have, m) || versions.MinorsBetween(wanted, kubelet) > 0
	})
}

// apiServerAsWanted reports whether the API server of a control plane has its wanted image, and is observed to run
// with it.
func apiServerAsWanted(have Snapshot, m Machine) bool {
	wanted := m.Images[kubenames.KubeAPIServer]
	node, registered := have.NodeOf(m)
	pod, shown := node.StaticPods[string(kubenames.KubeAPIServer)]

	return have.Machines[m.Name].Images[kubenames.KubeAPIServer] == wanted &&
		(!registered || !shown || pod.Image == wanted)
}

func idle(want Spec, have Snapshot) bool {
	return !slices.ContainsFunc(want.Known(), func(m Machine) bool { return have.Machines[m.Name].Busy != "" })
}

// refuseJoin refuses a join that would break the order of versions. Either a kubelet would be newer than an API
// server of the cluster, because its image does not follow the joining version. Or an API server would be older than
// a kubelet, because an older version is wanted than the current one.
func refuseJoin(want Spec, have Snapshot, m Machine, d *Decision) (refused bool) {
	running := KubernetesRunning(want, have)
	if running == "" || m.Images == nil {
		return false
	}

	images := imagesToJoin(want, m, joinsWith(want, have))

	kubelet, known := kubenames.ImageVersion(images[kubenames.Kubelet])
	if !known {
		kubelet = want.Kubernetes.Version
	}

	if versions.MinorsBetween(running, kubelet) > 0 {
		d.refuse(m.Name, fmt.Sprintf("it would join with kubelet %s (%s), but the oldest kube-apiserver of the cluster "+
			"runs %s: no kubelet may be newer than an API server", kubelet, images[kubenames.Kubelet], running),
			"Upgrade the control planes before you add the machine, or remove its kubelet image from the configuration")

		return true
	}

	api, known := kubenames.ImageVersion(images[kubenames.KubeAPIServer])
	if m.Role != step.ControlPlane || !known || versions.MinorsBetween(api, running) <= 0 {
		return false
	}

	for _, node := range have.Kubernetes.Nodes {
		if versions.MinorsBetween(api, node.KubeletVersion) > 0 {
			d.refuse(m.Name, fmt.Sprintf("it would join with kube-apiserver %s, but node %s runs kubelet %s: no kubelet "+
				"may be newer than an API server", api, node.Name, node.KubeletVersion), "Set kubernetes_version to "+running)

			return true
		}
	}

	return false
}

// markAwaiting marks the changes of a forecast that wait for API servers or kubelets of other resources, which a plan
// does not know.
func markAwaiting(want Spec, steps []step.Step) []step.Step {
	if !want.Shared {
		return steps
	}

	for i, op := range steps {
		if change, ok := op.(step.UpgradeComponent); ok {
			change.Awaits = slices.ContainsFunc(change.Each(), mayAwait)
			steps[i] = change
		}
	}

	return steps
}

// mayAwait reports whether the change of a component waits for other resources, if their API servers or kubelets are
// not as far yet.
func mayAwait(change step.UpgradeComponent) bool {
	from, known := kubenames.ImageVersion(change.From)
	to, named := kubenames.ImageVersion(change.Image)
	minors := versions.MinorsBetween(from, to)
	unknown := !known || !named

	return change.From != change.Image &&
		(change.Component == kubenames.Kubelet && (minors > 0 || unknown) ||
			change.Component == kubenames.KubeAPIServer && minors < 0)
}
