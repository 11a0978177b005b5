package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// kubeChange is the Kubernetes change of a trial.
type kubeChange struct {
	// versions are the running one and all up to the wanted one.
	versions []string
	// alone is true where the spec does not manage Kubernetes, and gap where it names no releases on the path.
	alone, gap   bool
	before, then naming
	noProxy      bool
	// hop, next and through are the progress of an earlier run: it reached versions[hop]. On the path to the next
	// version, all machines have the components before next, and the first few have next.
	hop, next, through int
	// placed counts the machines that were created at that progress.
	placed int
	// others is the progress of other resources: permanently behind, ahead, or moving along.
	others string
	// back is true once the user reverted a version.
	back bool
}

// naming is the source and the naming of images.
type naming struct {
	registry, suffix string
	// pinned is a component whose image is pinned by its digest.
	pinned kubenames.Component
	digest string
}

// images are those of a machine.
func (s *site) images(role step.Role, version string, by naming) kubenames.Images {
	out := kubenames.Images{}

	for _, c := range inOrder {
		switch {
		case role == step.Worker && c != kubenames.Kubelet, c == kubenames.KubeProxy && s.noProxy:
		case c == by.pinned:
			out[c] = fmt.Sprintf("%s/%s@sha256:%s", by.registry, c, by.digest)
			s.pinned[out[c]] = s.pins[by]
		case c == kubenames.Kubelet:
			out[c] = by.registry + "/kubelet:" + version + by.suffix
		default:
			out[c] = by.registry + "/" + string(c) + ":" + version
		}
	}

	return out
}

// imagesToJoin are those in the configuration with which a machine joins.
func (s *site) imagesToJoin(m cluster.Machine, version string) kubenames.Images {
	switch {
	case m.Images == nil:
		return s.images(m.Role, s.joinVersion, s.joinNaming)
	case version == "":
		return m.Images
	default:
		return m.Images.At(s.wantedVersion, version)
	}
}

// randomKubernetes picks the Kubernetes change.
func (t *trial) randomKubernetes() {
	k := &t.kube
	k.before = naming{registry: "registry.k8s.io"}
	k.then = k.before
	k.versions = []string{"v1.34.2"}
	k.alone = t.random.IntN(2) == 0

	switch t.random.IntN(10) {
	case 0, 1, 2:
		k.versions = []string{"v1.34.2", "v1.35.4"}
	case 3, 4, 5:
		k.versions = []string{"v1.34.2", "v1.35.4", "v1.36.3"}
	case 6:
		k.versions = []string{"v1.33.9", "v1.34.2", "v1.35.4", "v1.36.3"}
		k.gap = !t.whole && t.random.IntN(3) == 0
	case 7:
		k.versions = []string{"v1.35.1", "v1.35.4"}
	case 8:
		k.versions = []string{"v1.35.4", "v1.35.1"}
		t.new.AllowDowngrade = t.new.AllowDowngrade || t.whole || t.random.IntN(2) == 0
	}

	if !t.whole && t.random.IntN(25) == 0 {
		k.versions = []string{"v1.36.3", "v1.35.4"}
	}

	t.randomNaming()

	k.noProxy = t.random.IntN(6) == 0
	t.site.noProxy = k.noProxy
	t.policy.DrainForKubelet = t.random.IntN(4) == 0
	k.others = []string{"behind", "ahead", "along", "along"}[t.random.IntN(4)]

	if hops := len(k.versions) - 1; hops > 0 && (hops == 1 || k.then.pinned == "") && t.random.IntN(3) == 0 &&
		k.versions[0] < k.versions[1] {
		k.hop, k.next, k.through = t.random.IntN(hops), t.random.IntN(len(inOrder)), t.random.IntN(8)
	}

	t.joinVersion, t.joinNaming, t.wantedVersion, t.wanted = k.versions[0], k.before, k.final(), k.then
	t.manifests = k.versions[k.hop]

	if k.alone {
		return
	}

	t.want.Kubernetes.Version = k.final()
	if n := len(k.versions); n > 2 && !k.gap {
		t.want.Kubernetes.Via = k.versions[1 : n-1]
	}

	if t.random.IntN(3) > 0 {
		t.want.Kubernetes.Manifests = t.manifests
	}
}

// randomNaming picks the source of images, before and after.
func (t *trial) randomNaming() {
	k := &t.kube

	if t.random.IntN(3) == 0 {
		k.before.registry = "mirror.local:5000/k8s"
	}

	k.then = k.before

	if t.random.IntN(4) == 0 {
		k.then.registry = "other.local/images"
	}

	if t.random.IntN(6) == 0 {
		k.then.suffix = "-slim"
	}

	if t.random.IntN(12) == 0 && (!t.whole || len(k.versions) < 3) {
		k.before.pinned = []kubenames.Component{kubenames.KubeScheduler, kubenames.Kubelet, kubenames.KubeProxy}[t.random.IntN(3)]
		k.then.pinned = k.before.pinned
		k.before.digest, k.then.digest = "aaa", "bbb"
	}

	t.pins[k.before], t.pins[k.then] = k.versions[0], k.final()
}

func (k *kubeChange) final() string { return k.versions[len(k.versions)-1] }

// reached is what an earlier run did to a machine: first to the control planes in their order, and then to the
// workers.
func (t *trial) reached(role step.Role) kubenames.Images {
	k := &t.kube

	by := k.before
	if k.hop > 0 {
		by = k.then
	}

	images := t.images(role, k.versions[k.hop], by)
	if k.hop+1 >= len(k.versions) || k.alone || k.versions[k.hop] > k.versions[k.hop+1] {
		return images
	}

	for i, c := range inOrder {
		through := i < k.next || i == k.next && k.placed < k.through
		if role == step.Worker {
			through = c == kubenames.Kubelet && k.next == len(inOrder)-1 && k.placed < k.through
		}

		if through && images[c] != "" {
			images[c] = t.images(role, k.versions[k.hop+1], k.then)[c]
		}
	}

	k.placed++

	return images
}

// elsewhereAt is the version of machines of other resources.
func (t *trial) elsewhereAt() string {
	k := &t.kube

	ahead := k.hop
	if k.others == "ahead" && !k.alone && k.versions[0] < k.final() {
		ahead = min(k.hop+1, len(k.versions)-1)
		if !t.want.OwnsControlPlane() {
			ahead = len(k.versions) - 1
		}
	}

	return k.versions[ahead]
}

// liveKubernetes starts what machines of other resources run.
func (t *trial) liveKubernetes(b *box) {
	role := step.Worker
	if b.controlPlane {
		role = step.ControlPlane
	}

	t.setKubernetes(b, t.images(role, t.elsewhereAt(), naming{registry: t.kube.before.registry}))
}

func (t *trial) setKubernetes(b *box, images kubenames.Images) {
	b.kube.images = images
	b.kube.begin()

	for _, c := range b.kube.parts() {
		b.kube.shown = with(b.kube.shown, c, kubestate.StaticPod{Stamp: stamp(images[c], b.kube.keysOf(c)), Image: images[c],
			Ready: b.kube.works(c)})
	}
}

// othersMove reports whether runs of other resources are working.
func (t *trial) othersMove() bool { return t.othersFollow() && t.waitsForOthers() }

// othersFollow reports whether other resources get the same version at the same time. Without failures a run ends
// even if they do not, unless a lock lets it continue to the next version with a kubelet that stays.
func (t *trial) othersFollow() bool {
	locked := slices.ContainsFunc(t.want.Machines, func(m cluster.Machine) bool { return m.Locked })
	stay := t.kube.others == "behind" && t.want.Shared && !(locked && t.policy.DrainForKubelet)

	return !t.kube.alone && (t.kube.others == "along" || t.whole && !stay)
}

// elsewhere is their standing, as a run of the same process sees it.
func (t *trial) elsewhere() cluster.Elsewhere {
	switch {
	case t.othersMove():
		t.quietSince = time.Time{}
	case t.quietSince.IsZero():
		t.quietSince = t.now
	}

	return cluster.Elsewhere{Standing: cluster.Standing{Moves: t.othersMove()}, QuietSince: t.quietSince}
}

// othersGoOn lets other resources upgrade their machines by a version, unless this one blocks them: their kubelets
// wait for all API servers too.
func (t *trial) othersGoOn() (moved bool) {
	k := &t.kube
	if !t.othersFollow() || !t.api() {
		return false
	}

	lowest := k.final()

	for _, b := range t.boxes {
		if v := t.versionOf(b.kube.shown[kubenames.KubeAPIServer].Image); b.controlPlane && newer(lowest, v) {
			lowest = v
		}
	}

	for _, b := range t.boxes {
		if t.owns(b) || !b.others || b.foreign || b.life != running || t.nodeOf(b) == nil || !b.kube.proven() {
			continue
		}

		for _, c := range []kubenames.Component{kubenames.KubeAPIServer, kubenames.Kubelet} {
			moved = t.goesOn(b, c, minor(lowest)) || moved
		}
	}

	return moved
}

// goesOn upgrades one version of another resource's machine: its kubelet, or everything else with its API server.
func (t *trial) goesOn(b *box, c kubenames.Component, lowest int) bool {
	versions, most, role := t.kube.versions, lowest, step.Worker
	if c == kubenames.KubeAPIServer {
		most++
	}

	if b.controlPlane {
		role = step.ControlPlane
	}

	at := slices.Index(versions, t.versionOf(b.kube.images[c]))
	if at < 0 || at+1 >= len(versions) || minor(versions[at+1]) > most {
		return false
	}

	images := t.images(role, versions[at+1], naming{registry: t.kube.before.registry})
	if c == kubenames.KubeAPIServer {
		images = withImage(images, kubenames.Kubelet, b.kube.images[kubenames.Kubelet])
	} else {
		images = withImage(b.kube.images, kubenames.Kubelet, images[kubenames.Kubelet])
	}

	b.kube.images = images

	t.say("another resource upgrades %s of %s to %s", c, b.name, versions[at+1])

	return true
}

// waitsForOthers is true where machines of other resources are behind, which no forecast upgrades.
func (t *trial) waitsForOthers() bool { return len(t.lagging()) > 0 }

// randomDrift changes images by hand, and adds images that never work.
func (t *trial) randomDrift() {
	if t.kube.alone {
		return
	}

	for _, m := range t.want.Machines {
		b := t.meant[m.Name]
		if !b.up() || len(b.kube.parts()) == 0 {
			continue
		}

		c := b.kube.parts()[t.random.IntN(len(b.kube.parts()))]
		version := t.versionOf(b.kube.images[c])

		if c != t.kube.before.pinned && t.random.IntN(12) == 0 {
			drift := naming{registry: "drift.local/x"}
			if t.random.IntN(2) == 0 {
				version = fmt.Sprintf("v1.%d.0", minor(version))
			}

			t.setKubernetes(b, withImage(b.kube.images, c, t.images(step.ControlPlane, version, drift)[c]))
		}

		if !t.whole && t.random.IntN(30) == 0 {
			bad := t.kube.versions[t.random.IntN(len(t.kube.versions))]
			b.kube.faulty = with(b.kube.faulty, c, t.images(m.Role, bad, t.kube.then)[c])
			t.setKubernetes(b, b.kube.images)
		}
	}
}

// takeBack lets the user revert a version that does not work.
func (t *trial) takeBack() {
	k := &t.kube
	to := t.random.IntN(len(k.versions) - 1)

	k.back, k.versions = true, k.versions[:to+1]
	t.wantedVersion, t.wanted = k.final(), k.then
	t.want.Kubernetes.Version, t.want.Kubernetes.Via = k.final(), k.versions[min(1, to):to]

	for i, m := range t.want.Machines {
		t.want.Machines[i].Images = t.images(m.Role, k.final(), k.then)
	}

	t.say("the user takes Kubernetes back to %s", k.final())
}

// mayTakeBack is true where an unfinished upgrade can be reverted.
func (t *trial) mayTakeBack() bool {
	k := &t.kube

	return !k.alone && !k.back && k.then.pinned == "" && len(k.versions) > 1 && k.versions[0] < k.final() &&
		t.random.IntN(3) == 0
}

func contains(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

// refusedKubernetes checks a refusal of the wanted Kubernetes.
func (t *trial) refusedKubernetes(text string) bool {
	final := t.want.Kubernetes.Version

	switch {
	case contains(text, "an older minor version is not supported"):
		return minor(t.lowest(t.tells)) > minor(final) || minor(t.highest()) > minor(final)+1
	case contains(text, "without allow_downgrade"):
		return newer(t.lowest(t.tells), final) &&
			slices.ContainsFunc(t.want.Machines, func(m cluster.Machine) bool { return !m.AllowDowngrade })
	case contains(text, "it would join with"):
		return len(t.kube.versions) > 1
	case contains(text, "one minor version later"):
		return t.kube.gap || len(t.kube.versions) == 1 || t.kube.back
	case contains(text, "it is locked and keeps its kubelet"):
		return t.policy.DrainForKubelet && slices.ContainsFunc(t.want.Machines, func(m cluster.Machine) bool { return m.Locked })
	case contains(text, "an unmanaged node, runs kubelet"):
		return t.unmanagedTooOld()
	case contains(text, "intermediate release"):
		return t.kube.then.pinned != "" && len(t.kube.versions) > 2
	default:
		return false
	}
}

// lagging names nodes of other resources that this one waits for.
func (t *trial) lagging() []string {
	var names []string

	for _, b := range t.boxes {
		if t.owns(b) || t.nodeOf(b) == nil || t.kube.alone {
			continue
		}

		shown := b.kube.shown
		if newer(t.kube.final(), t.versionOf(shown[kubenames.KubeAPIServer].Image)) ||
			newer(t.kube.final(), t.versionOf(shown[kubenames.Kubelet].Image)) ||
			newer(t.versionOf(shown[kubenames.Kubelet].Image), t.kube.final()) {
			names = append(names, "node "+b.name)
		}
	}

	return names
}

// beyondHelp is true for a machine on which a component never works with its image. If an upgrade set that image and
// the user reverts it, the machine recovers, unless another change comes first.
func (t *trial) beyondHelp(m cluster.Machine, b *box) bool {
	return slices.ContainsFunc(b.kube.parts(), func(c kubenames.Component) bool {
		image := b.kube.images[c]

		return b.kube.faulty[c] == image && (!t.kube.back || image == m.Images[c] || t.pendingOnTalos())
	})
}

// pendingOnTalos is true while anything except Kubernetes must change.
func (t *trial) pendingOnTalos() bool {
	return slices.ContainsFunc(t.want.Machines, func(m cluster.Machine) bool {
		b := t.meant[m.Name]

		return b.digest != newDigest && b.staged != newDigest || b.version != m.TalosVersion || m.Schematic != "" && b.schematic != m.Schematic
	})
}

// answers is true for a machine whose configuration can be read.
func (t *trial) answers(b *box) bool { return b.up() && !b.foreign && t.at(b.addr) == b }

// tells is true for machines that show whether an upgrade is finished: the control planes, of a spec that has any.
func (t *trial) tells(b *box) bool {
	return t.answers(b) && (b.controlPlane || !t.want.OwnsControlPlane())
}

// beginProxy gives the DaemonSet kube-proxy the control planes' image.
func (t *trial) beginProxy() {
	for _, b := range t.boxes {
		if image := b.kube.images[kubenames.KubeProxy]; b.controlPlane && image != "" && t.proxy == "" {
			t.proxy = image
		}
	}
}

// highest is the highest version on the machines of the spec.
func (t *trial) highest() string {
	highest := ""

	for _, m := range t.want.Machines {
		for c, image := range t.meant[m.Name].kube.images {
			if v := t.versionOf(image); m.Images[c] != "" && (highest == "" || newer(v, highest)) {
				highest = v
			}
		}
	}

	return highest
}
