package cluster_test

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// Invariants of a Kubernetes upgrade.

var inOrder = []kubenames.Component{
	kubenames.KubeAPIServer, kubenames.KubeControllerManager, kubenames.KubeScheduler, kubenames.KubeProxy, kubenames.Kubelet,
}

// release is the version of the path that an image belongs to. An image without a version belongs to the last one.
func (j *judge) release(image string) string {
	version, ok := kubenames.ImageVersion(image)
	if ok && slices.Contains(j.want.Kubernetes.Via, version) {
		return version
	}

	return j.want.Kubernetes.Version
}

// wantedAt is the image of a component on a machine at a version of the path.
func (j *judge) wantedAt(m cluster.Machine, c kubenames.Component, version string) string {
	return j.images(m.Role, version, j.wanted)[c]
}

// components checks a change of components when it begins.
func (j *judge) components(op step.UpgradeComponent, b *box) {
	for _, part := range op.Each() {
		j.component(part, b)
	}
}

// component checks a change of one component when it begins.
func (j *judge) component(op step.UpgradeComponent, b *box) {
	if have := b.kube.images[op.Component]; op.From != have {
		j.fail("%q although it has %s", op, have)
	}

	if op.From == op.Image {
		return // nothing changes
	}

	m := j.machine(op.Machine)

	if right := j.wantedAt(m, op.Component, j.release(op.Image)); op.Image != right {
		j.fail("%q, which is to be called %s", op, right)
	}

	j.pulledEverywhere(op)
	j.direction(op)
	j.sequence(op, b)

	if op.Role == step.ControlPlane {
		j.othersWork(op, b)
	} else {
		j.budget(op, b)
	}

	j.skew(op, b)

	if op.Component == kubenames.Kubelet {
		b.disrupted, b.inRun = true, j.run
	}
}

// changesNow are the components of a machine that change in the same minor version as a step.
func (j *judge) changesNow(step step.UpgradeComponent, m cluster.Machine) bool {
	b := j.meant[m.Name]
	hop := j.release(step.Image)
	back := minor(j.versionOf(step.Image)) < j.minorOf(step.From)

	return slices.ContainsFunc(b.kube.parts(), func(c kubenames.Component) bool {
		if m.Images[c] == "" || j.stays(m.Name, c) {
			return false
		}

		has := j.minorOf(b.kube.images[c])

		switch {
		case back:
			return has > minor(hop)
		case hop == j.want.Kubernetes.Version && has >= minor(hop)-1 && has <= minor(hop) &&
			!newer(j.versionOf(step.From), hop):
			return b.kube.images[c] != m.Images[c]
		default:
			return has == minor(hop)-1
		}
	})
}

// pulledEverywhere: nothing changes before all machines have the images.
func (j *judge) pulledEverywhere(step step.UpgradeComponent) {
	for _, m := range j.want.Machines {
		b := j.meant[m.Name]
		if b.digest == "" || !b.up() || b.foreign || step.Component == kubenames.KubeProxy && m.Name == step.Machine {
			continue
		}

		if hop := j.release(step.Image); j.changesNow(step, m) && j.pulled[m.Name] != hop {
			j.fail("%q before %s has the images of %s", step, m.Name, hop)
		}
	}
}

// direction: no minor version is skipped, and only a reverted upgrade is downgraded.
func (j *judge) direction(step step.UpgradeComponent) {
	from, to := j.versionOf(step.From), j.versionOf(step.Image)
	final := j.want.Kubernetes.Version

	if d := minor(to) - minor(from); d > 1 || d < -1 {
		j.fail("%q skips a minor version (%s -> %s)", step, from, to)
	}

	if !newer(from, to) || from == "" {
		return
	}

	lowest := j.lowest(func(*box) bool { return true })

	if minor(to) < minor(from) && (!newer(from, final) || newer(lowest, final) && minor(lowest) > minor(final)) {
		j.fail("%q goes back from %s, and %s is wanted", step, from, final)
	}
}

// lowest is the lowest version on the machines of the spec that count.
func (j *judge) lowest(counts func(*box) bool) string {
	lowest := ""

	for _, m := range j.want.Machines {
		if !counts(j.meant[m.Name]) {
			continue
		}

		for c, image := range j.meant[m.Name].kube.images {
			if v := j.versionOf(image); m.Images[c] != "" && v != "" && (lowest == "" || newer(lowest, v)) {
				lowest = v
			}
		}
	}

	return lowest
}

// sequence is the order of an upgrade. All machines finish a minor version, manifests included, before any begins the
// next, and components change in their order.
func (j *judge) sequence(op step.UpgradeComponent, b *box) {
	from, to := j.minorOf(op.From), j.minorOf(op.Image)
	if to <= from {
		return
	}

	for _, m := range j.want.Machines {
		other := j.meant[m.Name]
		if other.digest == "" || other.foreign {
			continue
		}

		for c, image := range other.kube.images {
			if j.stays(m.Name, c) {
				continue // as far behind as the skew policy permits
			}

			if m.Images[c] != "" && j.minorOf(image) < to-1 {
				j.fail("%q while %s of %s is at %s", op, c, m.Name, image)
			}

			// What is behind the API servers changes together on each machine.
			earlier := c == kubenames.KubeAPIServer && op.Component != c || op.Role == step.Worker
			if m.Role == step.ControlPlane && earlier && other != b && m.Images[c] != "" && j.minorOf(image) < to {
				j.fail("%q before %s of %s, which is at %s", op, c, m.Name, image)
			}
		}
	}

	if recorded := j.want.Kubernetes.Manifests; recorded != "" && j.want.OwnsControlPlane() && minor(j.manifests) < to-1 {
		j.fail("%q while the bootstrap manifests are at %s", op, j.manifests)
	}
}

// othersWork: no control plane changes unless the rest of the spec works, which proves the change before. An API
// server that does not run may change where there is no API to ask.
func (j *judge) othersWork(op step.UpgradeComponent, b *box) {
	if op.Component == kubenames.KubeAPIServer && !j.api() && !b.kube.works(kubenames.KubeAPIServer) {
		return
	}

	if !j.api() {
		j.fail("%q while the Kubernetes API does not respond", op)
	}

	for _, m := range j.want.Machines {
		if other := j.meant[m.Name]; other != b &&
			(!j.well(other) || m.Role == step.ControlPlane && !j.provenBy(other.kube)) {
			j.fail("%q while %s does not work (%s)", op, m.Name, other.life)
		}
	}
}

// skew is which versions may run together.
func (j *judge) skew(step step.UpgradeComponent, b *box) {
	from, to := j.minorOf(step.From), j.minorOf(step.Image)
	if from == to {
		return
	}

	if step.Component == kubenames.KubeAPIServer {
		j.skewOfAPIServer(step, b, from, to)

		return
	}

	oldest, newest := 0, 0

	for _, other := range j.boxes {
		api, runs := other.kube.runs[kubenames.KubeAPIServer]
		counts := step.Component == kubenames.Kubelet || other == b

		if !counts || !other.controlPlane || other.foreign || !runs || j.nodeOf(other) == nil {
			continue
		}

		if v := j.minorOf(api.image); oldest == 0 || v < oldest {
			oldest = v
		}

		newest = max(newest, j.minorOf(api.image))
	}

	if to > from && oldest > 0 && to > oldest {
		j.fail("%q is newer than an API server (1.%d)", step, oldest)
	}

	if to < from && step.Component == kubenames.Kubelet && newest-to > 3 {
		j.fail("%q is more than three minor versions older than an API server (1.%d)", step, newest)
	}
}

func (j *judge) owns(b *box) bool {
	return slices.ContainsFunc(j.want.Machines, func(m cluster.Machine) bool { return j.meant[m.Name] == b })
}

func (j *judge) skewOfAPIServer(step step.UpgradeComponent, b *box, from, to int) {
	for _, other := range j.boxes {
		if other.foreign || j.nodeOf(other) == nil {
			continue
		}

		kubelet := j.minorOf(other.kube.shown[kubenames.Kubelet].Image)
		api := j.minorOf(other.kube.shown[kubenames.KubeAPIServer].Image)

		if to > from && kubelet > 0 && to-kubelet > 3 || to < from && kubelet > to && j.api() {
			j.fail("%q while the kubelet of %s is at 1.%d", step, other.name, kubelet)
		}

		if other != b && other.controlPlane && api > 0 && (to > from && to-api > 1 || to < from && api-to > 1) {
			j.fail("%q while the API server of %s is at 1.%d", step, other.name, api)
		}
	}

	for _, c := range []kubenames.Component{kubenames.KubeControllerManager, kubenames.KubeScheduler, kubenames.Kubelet} {
		if j.api() && to < from && j.minorOf(b.kube.images[c]) > to {
			j.fail("%q while %s of the same machine is at %s", step, c, b.kube.images[c])
		}
	}
}

// joining: a machine joins with the cluster's version, as far as the API shows it.
func (j *judge) joining(step step.ApplyConfig, b *box) {
	m := j.machine(step.Machine)
	if m.Images == nil || !j.api() {
		return
	}

	lowest := ""

	for _, other := range j.boxes {
		api, shown := other.kube.shown[kubenames.KubeAPIServer]
		if other == b || other.foreign || !shown || j.nodeOf(other) == nil {
			continue
		}

		if v := j.versionOf(api.Image); lowest == "" || newer(lowest, v) {
			lowest = v
		}
	}

	with := cmp.Or(step.Kubernetes, j.want.Kubernetes.Version)
	if _, tagged := kubenames.ImageVersion(m.Images[kubenames.KubeAPIServer]); tagged && lowest != "" && newer(with, lowest) &&
		minor(with) > minor(lowest) {
		j.fail("%q with Kubernetes %s, and the oldest API server is %s", step, with, lowest)
	}
}

// synced: manifests are those of the version on all control planes of the spec.
func (j *judge) synced(op step.SyncManifests) {
	if m, _ := j.want.Find(op.Machine); op.Changes != "" && j.meant[m.Name].digest != m.ConfigDigest {
		j.fail("%q from another configuration than the wanted one", op)
	}

	for _, m := range j.want.Machines {
		if m.Role != step.ControlPlane {
			continue
		}

		for c, image := range j.meant[m.Name].kube.images {
			kept := j.stays(m.Name, c)
			if m.Images[c] != "" && j.minorOf(image) != minor(op.Version) && !kept {
				j.fail("%q while %s of %s is at %s", op, c, m.Name, image)
			}
		}
	}
}

// oneAtATime: at most one control plane of the spec has a failed pod, if at most one had when the run began. Without its
// own etcd an API server serves nothing, and the other pods use the API server beside them (Talos 1.13, localhost).
func (j *judge) oneAtATime() {
	var down []string

	for _, m := range j.want.Machines {
		if b := j.meant[m.Name]; m.Role == step.ControlPlane && b.life == running && !b.foreign && b.digest != "" &&
			j.settled[m.Name] && j.etcdUp(b) && !b.kube.podsWork() {
			down = append(down, m.Name)
		}
	}

	if len(down) > max(1, j.downAtFirst) {
		j.fail("static pods of %v do not run", down)
	}
}

// noteWhoWorks records which control planes are in the cluster when a run begins.
func (j *judge) noteWhoWorks() {
	j.settled, j.downAtFirst = map[string]bool{}, 0

	for _, m := range j.want.Machines {
		b := j.meant[m.Name]
		if m.Role != step.ControlPlane || b.life != running || b.digest == "" {
			continue
		}

		j.settled[m.Name] = true

		if !b.kube.podsWork() || !b.kube.proven() {
			j.downAtFirst++
		}
	}
}

// notUpgraded lists what differs from the wanted Kubernetes.
func (j *judge) notUpgraded() []string {
	var missing []string

	for _, m := range j.want.Machines {
		b := j.meant[m.Name]

		for c, image := range m.Images {
			if len(j.behind) > 0 {
				break // all machines of the spec wait for what is left to a later run
			}

			if b.kube.images[c] != image && !(j.stays(m.Name, c)) {
				missing = append(missing, fmt.Sprintf("%s: %s is %s and not %s", m.Name, c, b.kube.images[c], image))
			}
		}

		if m.Images != nil && !j.provenBy(b.kube) {
			missing = append(missing, m.Name+": not everything of Kubernetes runs")
		}
	}

	if j.want.Kubernetes.Manifests != "" && j.want.OwnsControlPlane() && j.manifests != j.want.Kubernetes.Version &&
		!j.apiServersBehind() {
		missing = append(missing, "the bootstrap manifests are those of "+j.manifests)
	}

	if len(j.want.Kubernetes.Changed) > 0 && j.want.Kubernetes.Version != "" && !j.madeFromWanted() && !j.apiServersBehind() {
		missing = append(missing, "the bootstrap manifests are not made of what is wanted")
	}

	return missing
}

// madeFromWanted reports whether manifests were synced from a wanted configuration, where any control plane has one.
func (j *judge) madeFromWanted() bool {
	var wanted []string

	for _, m := range j.want.Machines {
		if m.Role == step.ControlPlane && j.meant[m.Name].digest == m.ConfigDigest {
			wanted = append(wanted, m.ConfigDigest)
		}
	}

	return len(wanted) == 0 || slices.Contains(wanted, j.madeFrom)
}

// apiServersBehind is true while another resource's API server is older than wanted.
func (j *judge) apiServersBehind() bool {
	return slices.ContainsFunc(j.boxes, func(b *box) bool {
		return b.controlPlane && !j.owns(b) && j.nodeOf(b) != nil &&
			minor(j.want.Kubernetes.Version) > j.minorOf(b.kube.shown[kubenames.KubeAPIServer].Image)
	})
}

// newer compares versions such as v1.35.4.
func newer(a, b string) bool {
	var x, y [3]int

	if _, err := fmt.Sscanf(a, "v%d.%d.%d", &x[0], &x[1], &x[2]); err != nil {
		return false
	}

	if _, err := fmt.Sscanf(b, "v%d.%d.%d", &y[0], &y[1], &y[2]); err != nil {
		return false
	}

	return slices.Compare(x[:], y[:]) > 0
}
