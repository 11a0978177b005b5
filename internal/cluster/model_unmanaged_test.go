package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// randomUnmanaged gives some clusters machines that no resource has, some with an old kubelet. They come and go.
// No step is ever one on such a machine (judge.identity), and they take nothing from what is wanted (judge.unreached).
func (t *trial) randomUnmanaged(random *rand.Rand) {
	if !t.created || random.IntN(5) > 0 {
		return
	}

	t.unmanaged = random

	for _, b := range t.boxes { // whose resource was given up
		b.others = b.others && (t.whole || random.IntN(4) > 0)
	}

	for range 1 + random.IntN(3) {
		t.scaleOut()
	}
}

// scaleOut adds a machine that joined by itself.
func (t *trial) scaleOut() {
	b := t.newBox(fmt.Sprintf("auto-%d", len(t.boxes)+1), cluster.Worker)
	b.life, b.version = running, t.old.TalosVersion
	t.register(b)

	version := t.kube.versions[t.kube.hop]
	if !t.whole && t.unmanaged.IntN(12) == 0 {
		version = "v1.32.5"
	}

	t.setKubernetes(b, t.images(cluster.Worker, version, naming{registry: t.kube.before.registry}))
	t.say("%s joins by itself with kubelet %s", b.name, version)
}

// comeAndGo lets an autoscaler work while a plan is carried out.
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

// isUnmanaged is true for a machine at work that no resource has.
func (t *trial) isUnmanaged(b *box) bool {
	return !t.owns(b) && !b.others && !b.foreign && t.nodeOf(b) != nil
}

// unmanagedTooOld is whether the kubelet of one of them is older than the wanted API servers take.
func (t *trial) unmanagedTooOld() bool {
	return slices.ContainsFunc(t.boxes, func(b *box) bool {
		return t.isUnmanaged(b) && minor(t.want.Kubernetes.Version)-t.minorOf(b.kube.shown[cluster.Kubelet].Image) > 3
	})
}
