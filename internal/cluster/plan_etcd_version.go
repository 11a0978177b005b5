package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// etcdVersions are those of all members: as they report, and from their Talos version where they were not asked.
func etcdVersions(want Spec, have Snapshot) etcdstate.Together {
	var all []etcdstate.Versions

	if have.Etcd.Views != nil {
		for _, member := range have.Etcd.Members {
			all = append(all, have.Etcd.Views[member.ID].Versions)
		}

		return etcdstate.AllOf(all)
	}

	for _, m := range want.sorted(step.ControlPlane) {
		s := have.Machines[m.Name]
		if server := m.etcdWith(s.TalosVersion); s.Access == step.Member && server != "" && !s.EtcdService.WithoutData() {
			all = append(all, etcdstate.Versions{Server: server})
		}
	}

	lowest := etcdstate.AllOf(all).Oldest
	for i := range all {
		all[i].Data, all[i].GoesBack = cmp.Or(have.Etcd.GoesBack, lowest), have.Etcd.GoesBack != ""
	}

	return etcdstate.AllOf(all)
}

// etcdFirst says what must happen in etcd before a machine gets another Talos; empty for nothing. An etcd panics when
// it meets data of a newer minor version (etcd 3.6, version.MustDetectDowngrade). tell is true when a downgrade must
// be enabled.
func etcdFirst(want Spec, have Snapshot, upgrade step.Upgrade) (why string, tell bool) {
	m, _ := want.Find(upgrade.Machine)
	to := m.etcdWith(upgrade.To)

	if upgrade.Role != step.ControlPlane || upgrade.Loses || !versions.Older(to, m.etcdWith(upgrade.From)) ||
		have.Etcd.Views == nil && !want.OwnsControlPlane() {
		return "", false
	}

	return etcdVersions(want, have).Takes(to)
}

// awaitsEtcd says why an upgrade of a control plane waits for the version of etcd.
func (r rollout) awaitsEtcd(upgrade step.Upgrade) string {
	if upgrade.Role == step.ControlPlane && r.turnsBack() {
		return "goes on to " + upgrade.To + " once the downgrade of etcd is canceled"
	}

	if why, _ := etcdFirst(r.want, r.have, upgrade); why != "" {
		return "goes back to " + upgrade.To + " once etcd does: " + why + Because(etcdNotWhole(r.want, r.have, Machine{}))
	}

	return ""
}

// planEtcdVersion enables an etcd downgrade before the first machine gets an older etcd, and cancels it when no
// machine follows any more. Both are calls to one member that affect all.
func (r rollout) planEtcdVersion(d *Decision) {
	busy := func(m Machine) bool { return r.have.Machines[m.Name].Busy != "" }
	if slices.ContainsFunc(r.want.sorted(step.ControlPlane), busy) {
		return // it may be this very step
	}

	via := r.etcdEndpoint(d)

	if r.turnsBack() {
		if via == "" {
			d.hold("", "the downgrade of etcd is canceled once etcd has a quorum")
		} else {
			d.step(step.CancelEtcdDowngrade{Machine: via, To: r.etcd.Target()})
		}

		return
	}

	upgrade, tell := r.tellsEtcd()
	if !tell {
		return
	}

	m, _ := r.want.Find(via)
	reason := "no control plane responds"

	if via != "" {
		reason = etcdNotWhole(r.want, r.have, m)
	}

	if reason != "" {
		d.hold("", "the etcd downgrade to %s, which precedes the Talos downgrade, waits: %s", r.etcd.Target(), reason)

		return
	}

	d.step(step.DowngradeEtcd{Machine: m.Name, From: r.etcd.Data, To: m.etcdWith(upgrade.To),
		Shared: len(r.want.OtherControlPlanes) > 0})
}

// tellsEtcd finds an upgrade that needs an etcd downgrade first. Configurations come before it, because they may
// reboot members.
func (r rollout) tellsEtcd() (upgrade step.Upgrade, tell bool) {
	for _, m := range r.want.sorted(step.ControlPlane) {
		change, _ := r.changeOf(m)

		if _, config := change.(step.ApplyConfig); config {
			return upgrade, false
		}

		if next, ok := change.(step.Upgrade); ok && !tell {
			if _, needed := etcdFirst(r.want, r.have, next); needed {
				upgrade, tell = next, true
			}
		}
	}

	return upgrade, tell
}

// turnsBack reports whether an enabled downgrade is no longer wanted: every own control plane wants the newer etcd,
// and either all control planes are own ones or one of them upgrades. During a downgrade no member joins (etcd 3.7,
// cluster_util.go, isCompatibleWithCluster), so it is canceled for a machine that must join. Members of both versions
// keep the data as it is.
func (r rollout) turnsBack() bool {
	if !r.etcd.GoesBack {
		return false
	}

	target := r.etcd.Target()
	all := len(Unowned(r.want, r.have)) == 0 && len(r.want.OtherControlPlanes) == 0

	var rises, back, joins bool

	for _, m := range r.want.sorted(step.ControlPlane) {
		s := r.have.Machines[m.Name]
		e, member := r.have.MemberOf(m)
		joins = joins || e.Learner || !member && (s.Access == step.Maintenance || s.EtcdService.WithoutData())
		newer := versions.Older(target, m.etcdWith(m.TalosVersion))
		back = back || !newer
		rises = rises || newer && s.Access == step.Member && !versions.Older(target, m.etcdWith(s.TalosVersion))
	}

	return joins && !versions.Older(target, r.etcd.Oldest) || !back && (all || rises)
}

// etcdEndpoint is the own control plane that receives calls about all of etcd: the first whose member works.
func (r rollout) etcdEndpoint(d *Decision) string {
	q := quorumOf(r.want, r.have)

	for _, m := range r.want.sorted(step.ControlPlane) {
		member, ok := r.have.MemberOf(m)
		if ok && q.Healthy[member.ID] && !r.have.Machines[m.Name].GoingDown() && !d.concerns(m.Name) {
			return m.Name
		}
	}

	return ""
}

// etcdNotWhole names a member that does not work, other than the one that is asked.
func etcdNotWhole(want Spec, have Snapshot, via Machine) string {
	return cmp.Or(othersUnfit(want, have, via), have.Etcd.Discord(""))
}

// refuseOlderEtcd names control planes whose etcd is too old to join the current members. For those that keep their
// data, etcd is downgraded first (planEtcdVersion).
func refuseOlderEtcd(want Spec, have Snapshot, d *Decision) {
	members := etcdVersions(want, have)
	oldest := members.Oldest

	for _, m := range want.sorted(step.ControlPlane) {
		s := have.Machines[m.Name]
		_, member := have.MemberOf(m)
		own := m.etcdWith(m.TalosVersion)

		switch {
		case members.Silent || !versions.Older(own, oldest):
		case m.Ephemeral && s.TalosVersion != m.TalosVersion:
			d.refuse(m.Name, fmt.Sprintf("its pod contains its data, and etcd %s of Talos %s could not join "+
				"members that run %s",
				own, m.TalosVersion, oldest),
				"Keep the current Talos version, or add volumes to the control plane")
		case !member && (s.Access == step.Maintenance || s.EtcdService.WithoutData()):
			d.refuse(m.Name, fmt.Sprintf("etcd %s of Talos %s cannot join members that run %s", own, m.TalosVersion, oldest),
				"Let it join with the Talos version of the others, and downgrade it afterwards")
		}
	}
}
