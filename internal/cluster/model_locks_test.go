package cluster_test

import (
	"math/rand/v2"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

// randomLocks locks some machines of some clusters, seldom one that is to be removed.
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

// locked is that nothing takes a machine out of service that is locked.
func (j *judge) locked(step cluster.Step, b *box) {
	_, expels := step.(cluster.RemoveMember) // of a member whose machine is nobody any more
	blank := b.life == maintenance || b.pod != nil && b.digest == ""

	if j.machine(step.On()).Locked && cluster.Disruptive(step) && !expels && !blank {
		j.fail("%q, which is locked", step)
	}

	upgrade, ok := step.(cluster.Upgrade)
	if !ok || !b.controlPlane || blank {
		return
	}

	for _, m := range j.want.Machines {
		other, to := j.meant[m.Name], etcdstate.OfTalos(upgrade.To)
		if m.Locked && m.Role == cluster.ControlPlane && etcdstate.Older(to, etcdstate.OfTalos(b.version)) &&
			etcdstate.Older(to, etcdstate.OfTalos(other.version)) {
			j.fail("%q takes etcd back while %s is locked with %s", step, m.Name, other.version)
		}
	}
}

// keeps is that what is kept is kept for a lock: that of the machine itself, or that of one which is behind it.
func (j *judge) keeps(d cluster.Decision) {
	j.kept, j.keptKubelets = map[string]bool{}, map[string]bool{}

	for _, kept := range d.Kept {
		name := kept.Step.On()
		if _, config := kept.Step.(cluster.ApplyConfig); config && j.kept[name] {
			continue // it comes after the upgrade
		}

		if _, kubelet := kept.Step.(cluster.UpgradeComponent); kubelet {
			j.keptKubelets[name] = true
		} else {
			j.kept[name] = true
		}

		upgrade, upgrades := kept.Step.(cluster.Upgrade)
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
