package cluster_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// randomLocks locks some machines of some clusters, rarely one that leaves.
func (t *trial) randomLocks(random *rand.Rand) {
	if random.IntN(6) > 0 {
		return
	}

	for i := range t.want.Machines {
		t.want.Machines[i].Locked = random.IntN(4) == 0
	}

	for i := range t.want.Removed {
		t.want.Removed[i].Locked = !t.whole && random.IntN(40) == 0
	}
}

// randomWindow gives some clusters a maintenance window.
func (t *trial) randomWindow(random *rand.Rand) {
	if random.IntN(6) == 0 {
		t.window = time.Duration(1+random.IntN(60)) * time.Minute
		t.refuses = random.IntN(4) == 0
	}
}

// atWindow is the current state of the window.
func (t *trial) atWindow() cluster.Window {
	if t.window == 0 {
		return cluster.Window{}
	}

	turn := t.now.Unix() / int64(t.window.Seconds())
	if turn%2 > 0 {
		return cluster.Window{}
	}

	return cluster.Window{Closed: true, Opens: time.Unix((turn+1)*int64(t.window.Seconds()), 0).UTC(), Refuses: t.refuses}
}

// inWindow: no working machine is taken out of service while the window is closed.
func (t *trial) inWindow(d cluster.Decision, have cluster.Snapshot) {
	for _, op := range d.Steps {
		b := t.meant[op.On()]
		_, expels := op.(step.RemoveMember)
		_, lost := op.(step.ReplaceVolumes)
		blank := b != nil && (b.life == maintenance || b.pod != nil && b.digest == "")

		if have.Window.Closed && op.Disrupts() && !expels && !lost && !blank {
			t.fail("%q outside of the maintenance window", op)
		}
	}

	t.waited = t.waited || have.Window.Closed &&
		slices.ContainsFunc(d.Holds, func(h step.Hold) bool { return strings.Contains(h.Reason, "maintenance window") })
}

// locked: no locked machine is taken out of service.
func (j *judge) locked(op step.Step, b *box) {
	_, expels := op.(step.RemoveMember) // of a member without a machine
	blank := b.life == maintenance || b.pod != nil && b.digest == ""

	if j.machine(op.On()).Locked && op.Disrupts() && !expels && !blank {
		j.fail("%q, which is locked", op)
	}

	upgrade, ok := op.(step.Upgrade)
	if !ok || !b.controlPlane || blank {
		return
	}

	for _, m := range j.want.Machines {
		other, to := j.meant[m.Name], etcdstate.OfTalos(upgrade.To)
		if m.Locked && m.Role == step.ControlPlane && versions.Older(to, etcdstate.OfTalos(b.version)) &&
			versions.Older(to, etcdstate.OfTalos(other.version)) {
			j.fail("%q takes etcd back while %s is locked with %s", op, m.Name, other.version)
		}
	}
}

// keeps: what is kept is kept for the lock of the machine itself, or of one that it waits for.
func (j *judge) keeps(d cluster.Decision) {
	j.kept, j.keptKubelets = map[string]bool{}, map[string]bool{}

	for _, kept := range d.Kept {
		name := kept.Step.On()
		if _, config := kept.Step.(step.ApplyConfig); config && j.kept[name] {
			continue // it comes after the upgrade
		}

		if _, kubelet := kept.Step.(step.UpgradeComponent); kubelet {
			j.keptKubelets[name] = true
		} else {
			j.kept[name] = true
		}

		upgrade, upgrades := kept.Step.(step.Upgrade)
		behind := upgrades && slices.ContainsFunc(j.want.Machines, func(m cluster.Machine) bool {
			other := j.meant[m.Name]
			to, at := minor(upgrade.To), minor(other.version)

			return m.Locked && other.version != m.TalosVersion && (at < to-1 || at > to)
		})

		if !j.machine(name).Locked && !behind {
			j.fail("%q is kept, and no lock says so", kept.Step)
		}
	}
}

// leavesBehind: what is left to a later run waits for machines of other resources on which no run works.
func (t *trial) leavesBehind(d cluster.Decision) {
	t.behind = map[string]kubenames.Component{}

	for _, left := range d.Behind {
		change, ok := left.Step.(step.UpgradeComponent)
		if !ok || t.othersMove() || !t.want.Shared {
			t.fail("%q is left to a later run", left.Step)

			continue
		}

		to, back := minor(t.release(change.Image)), newer(t.versionOf(change.From), t.versionOf(change.Image))
		founded := slices.ContainsFunc(t.boxes, func(b *box) bool {
			api, kubelet := t.minorOf(b.kube.shown[kubenames.KubeAPIServer].Image), t.minorOf(b.kube.shown[kubenames.Kubelet].Image)

			return t.nodeOf(b) != nil && (back && kubelet > to || !back && b.controlPlane && api < to)
		})

		if !founded {
			t.fail("%q is left to a later run, and nothing is in its way", left.Step)
		}

		t.behind[change.Machine] = change.Component
	}
}

// stays reports whether a component of a machine stays, because of a lock or other resources.
func (j *judge) stays(machine string, c kubenames.Component) bool {
	return c == kubenames.Kubelet && j.keptKubelets[machine] || j.behind[machine] == c
}
