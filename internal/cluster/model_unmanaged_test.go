package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// randomUnmanaged gives some clusters machines without a resource, some with an old kubelet. They come and go. No
// step runs on such a machine (judge.identity), unless it is to follow the cluster, and they do not affect what is
// wanted (judge.unreached).
func (t *trial) randomUnmanaged(random *rand.Rand) {
	if !t.created || random.IntN(5) > 0 {
		return
	}

	t.unmanaged = random

	for _, b := range t.boxes { // whose resource was removed
		b.others = b.others && (t.whole || random.IntN(4) > 0)
	}

	for range 1 + random.IntN(5) {
		t.scaleOut()
	}

	if random.IntN(2) == 0 {
		t.changeUnmanaged()
	}
}

// changeUnmanaged makes the existing ones follow the cluster: with their Talos, their configuration, or both.
func (t *trial) changeUnmanaged() {
	upgrades := t.unmanaged.IntN(3)
	t.want.Pools[cluster.UnmanagedPool] = cluster.Budget{Count: t.unmanaged.IntN(3)}

	for _, b := range t.boxes {
		if !t.isUnmanaged(b) || b.controlPlane {
			continue
		}

		m := cluster.Machine{Name: cluster.UnmanagedName(b.name), Role: step.Worker, Pool: cluster.UnmanagedPool,
			Wanted: cluster.Wanted{Address: b.addr}, Remembered: cluster.Remembered{NodeName: b.name},
			Installation: cluster.Installation{TalosVersion: t.new.TalosVersion, Via: t.mid}}
		if upgrades != 0 {
			m.ConfigDigest = newDigest
		}

		if upgrades == 1 {
			m.TalosVersion, m.Via = "", nil
		}

		t.want.ChangeOnly = append(t.want.ChangeOnly, m)
		t.meant[m.Name] = b
		t.nodeOf(b).ours = !t.whole && t.unmanaged.IntN(8) == 0 // by a killed run
	}
}

// onlyChanged reports whether a machine has no resource and follows the cluster.
func (j *judge) onlyChanged(b *box) bool {
	return slices.ContainsFunc(j.want.ChangeOnly, func(m cluster.Machine) bool { return j.meant[m.Name] == b })
}

// afterAll: machines of the spec finish before, and Talos gets newer.
func (j *judge) afterAll(op step.Step) {
	if upgrade, is := op.(step.Upgrade); is && !newer(upgrade.To, upgrade.From) {
		j.fail("%q makes Talos older on a machine that no resource has", op)
	}

	for _, m := range j.want.Machines {
		if b := j.meant[m.Name]; b.life == running && !b.foreign && b.version != m.TalosVersion && !j.kept[m.Name] {
			j.fail("%q before %s, which runs %s", op, m.Name, b.version)
		}
	}
}

// unmanagedLeft is what those that follow the cluster lack, without those that are gone.
func (j *judge) unmanagedLeft() []string {
	var missing []string

	for _, m := range j.want.ChangeOnly {
		b := j.meant[m.Name]

		switch n := j.nodeOf(b); {
		case n == nil:
		case m.ConfigDigest != "" && b.digest != m.ConfigDigest && !(j.stages && b.staged == m.ConfigDigest):
			missing = append(missing, m.Name+": has another configuration")
		case m.TalosVersion != "" && newer(m.TalosVersion, b.version):
			missing = append(missing, m.Name+": runs "+b.version)
		case n.ours:
			missing = append(missing, m.Name+": its node is cordoned by talosop")
		}
	}

	return missing
}

// scaleOut adds a machine that joined by itself.
func (t *trial) scaleOut() {
	b := t.newBox(fmt.Sprintf("auto-%d", len(t.boxes)+1), step.Worker)
	b.life, b.version, b.digest, b.needsReboot = running, t.old.TalosVersion, "old", t.unmanaged.IntN(2) == 0
	t.register(b)

	version := t.kube.versions[t.kube.hop]
	if !t.whole && t.unmanaged.IntN(12) == 0 {
		version = "v1.32.5"
	}

	t.setKubernetes(b, t.images(step.Worker, version, naming{registry: t.kube.before.registry}))
	t.say("%s joins by itself with kubelet %s", b.name, version)
}

// comeAndGo lets an autoscaler work during a run.
func (t *trial) comeAndGo() {
	const now = 25

	switch {
	case t.unmanaged == nil || !t.api():
	case t.unmanaged.IntN(now) == 0 && len(t.boxes) < 60:
		t.scaleOut()
	case t.unmanaged.IntN(now) == 0:
		i := slices.IndexFunc(t.boxes, func(b *box) bool { return t.isUnmanaged(b) && !b.controlPlane })
		if i >= 0 {
			t.say("%s is scaled in", t.boxes[i].name)
			t.boxes[i].life = off
			t.deleteNode(t.boxes[i].name)
		}
	}
}

// isUnmanaged is true for a working machine without a resource.
func (t *trial) isUnmanaged(b *box) bool {
	removed := slices.ContainsFunc(t.want.Removed, func(m cluster.Machine) bool { return t.meant[m.Name] == b })

	return !t.owns(b) && !removed && !b.others && !b.foreign && t.nodeOf(b) != nil
}

// unmanagedTooOld reports whether the kubelet of one of them is too old for the wanted API servers.
func (t *trial) unmanagedTooOld() bool {
	return slices.ContainsFunc(t.boxes, func(b *box) bool {
		return t.isUnmanaged(b) && minor(t.want.Kubernetes.Version)-t.minorOf(b.kube.shown[kubenames.Kubelet].Image) > 3
	})
}
