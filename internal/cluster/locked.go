package cluster

import (
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// A locked machine keeps its state where a change would take it out of service. The others continue without it, as
// far as they may differ from it; what must not precede it is kept too. The run waits for neither: the user must
// remove the lock.

func (d *Decision) keep(op step.Step, reason string) {
	d.Kept = append(d.Kept, step.Kept{Step: op, Reason: reason})
}

func isLocked(name string) string { return name + " is locked" }

// keepLocked lists what the running machines keep.
func (r rollout) keepLocked(d *Decision) {
	for _, m := range r.want.all() {
		change, _ := r.nextChange(m)
		if change == nil {
			continue
		}

		reason := r.keeps(m, change)
		if reason == "" {
			continue
		}

		d.keep(change, reason)

		// Its configuration comes after the upgrade, and may not fit the current Talos.
		if config, configures := r.configOf(m); configures && change != step.Step(config) {
			d.keep(config, reason)
		}
	}
}

// keeps names the lock that prevents a change; empty when it is permitted.
func (r rollout) keeps(m Machine, change step.Step) string {
	if m.Locked && change.Disrupts() {
		return isLocked(m.Name)
	}

	upgrade, ok := change.(step.Upgrade)
	if !ok {
		return ""
	}

	if first := r.locked.before(upgrade); first != "" {
		return first
	}

	return r.etcdKept(upgrade)
}

// etcdKept names the locked control plane that prevents the etcd downgrade of an upgrade: during the downgrade no
// member joins, and a lock has no end.
func (r rollout) etcdKept(upgrade step.Upgrade) string {
	m, _ := r.want.Find(upgrade.Machine)
	to := m.etcdWith(upgrade.To)

	if upgrade.Role != step.ControlPlane || !versions.Older(to, m.etcdWith(upgrade.From)) {
		return ""
	}

	for _, other := range r.want.sorted(step.ControlPlane) {
		runs := other.etcdWith(r.have.Machines[other.Name].TalosVersion)
		if other.Locked && versions.Older(to, runs) {
			return isLocked(other.Name) + " and runs etcd " + runs
		}
	}

	return ""
}

// refuseLockedRemoval refuses to remove locked machines.
func refuseLockedRemoval(leaving []Machine, d *Decision) {
	for _, m := range leaving {
		if m.Locked {
			d.refuse(m.Name, "it is locked and cannot be removed",
				"To remove it, set locked = false and apply, then remove it")
		}
	}
}

// keepKubelets lists the kubelets that stay.
func (u kubernetesUpgrade) keepKubelets(d *Decision) {
	if u.target == "" {
		return
	}

	for _, m := range u.want.all() {
		if !u.keepsKubelet(m) || u.image(m, kubenames.Kubelet) == "" ||
			u.has(m, kubenames.Kubelet) == m.Images[kubenames.Kubelet] {
			continue
		}

		step := u.step(m, kubenames.Kubelet)
		step.Image, step.Evacuation = m.Images[kubenames.Kubelet], EvacuationOf(u.have, m, u.policy)
		step.HandOver = false
		d.keep(step, isLocked(m.Name))
	}
}

// refuseBeyondLocked refuses a Kubernetes version whose API servers do not support a kubelet that stays.
func (u kubernetesUpgrade) refuseBeyondLocked(d *Decision) {
	for _, m := range u.want.all() {
		version, known := u.version(m, kubenames.Kubelet)
		to, ok := kubenames.ImageVersion(m.Images[kubenames.Kubelet])

		if known && ok && u.keepsKubelet(m) && versions.MinorsBetween(version, to) > kubeletSkew {
			d.refuse(m.Name, fmt.Sprintf("it is locked and keeps its kubelet %s, and kube-apiserver %s supports kubelets "+
				"at most %d minor versions older", version, to, kubeletSkew),
				"Remove the lock, or upgrade Kubernetes by fewer minor versions")
		}
	}
}
