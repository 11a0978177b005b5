package cluster_test

import (
	"math/rand/v2"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// The versions of etcd in the model, as in etcd 3.6 and 3.7 (server/etcdserver/version). The leader raises the
// cluster version once all members run a newer one, and lowers it during a downgrade; databases follow. Verified with
// etcd 3.7.1 and 3.6.8.

// versionsOfEtcd is what the members of the model agree on.
type versionsOfEtcd struct {
	cluster string // its minor version
	target  string // the target of a downgrade
}

// etcdMinor is the etcd version of a machine.
func (b *box) etcdMinor() string { return etcdstate.OfTalos(b.version) }

// tickEtcd is what leader and members do by themselves.
func (s *site) tickEtcd() (moved bool) {
	before := s.etcd

	lowest, all := "", s.quorum()

	for _, m := range s.members {
		all = all && m.id == m.box.member && s.etcdUp(m.box)
		if minor := m.box.etcdMinor(); lowest == "" || versions.Older(minor, lowest) {
			lowest = minor
		}
	}

	switch {
	case !all:
	case s.etcd.target != "" && s.etcd.cluster == s.etcd.target:
		if !slices.ContainsFunc(s.members, func(m *etcdMember) bool { return m.box.etcdMinor() != s.etcd.target }) {
			s.etcd.target = ""
		}
	case s.etcd.target != "":
		s.etcd.cluster = s.etcd.target
	case s.etcd.cluster == "" || versions.Older(s.etcd.cluster, lowest):
		s.etcd.cluster = lowest
	}

	for _, m := range s.members {
		if s.etcdUp(m.box) && s.quorum() && m.box.dataOf != s.etcd.cluster {
			m.box.dataOf, moved = s.etcd.cluster, true
		}
	}

	return moved || before != s.etcd
}

// opensData is false for an etcd that is older than its data: it panics. The data of a removed member is not opened.
func (s *site) opensData(b *box) bool {
	if !b.data || s.memberOf(b) == nil || !versions.Older(b.etcdMinor(), b.dataOf) {
		return true
	}

	if !b.etcdBroken {
		b.etcdBroken = true
		s.fail("%s starts etcd %s on data of %s", b.name, b.etcdMinor(), b.dataOf)
	}

	return false
}

// admits reports whether an etcd may join with its version: none may during a downgrade (etcd 3.7, cluster_util.go,
// isCompatibleWithCluster).
func (s *site) admits(b *box) bool {
	return s.etcd.target == "" && !versions.Older(b.etcdMinor(), s.etcd.cluster)
}

// etcdVersionsOf are the versions that a member reports.
func (s *site) etcdVersionsOf(b *box) etcdstate.Versions {
	return etcdstate.Versions{Server: b.etcdMinor(), Data: b.dataOf,
		GoesBack: s.etcd.target != "" && versions.Older(b.dataOf, b.etcdMinor())}
}

// downgradeEtcd enables a downgrade on one member, which answers once its own data is downgraded.
func (s *site) downgradeEtcd(b *box, step step.DowngradeEtcd) {
	if s.etcd.target == step.To || s.etcd.cluster == step.To {
		return
	}

	s.etcd.target = step.To
	s.tickEtcd()
}

// downgrade: etcd goes back by one version, while all members work. An etcd that does not run refuses the call.
func (j *judge) downgrade(op step.DowngradeEtcd, b *box) {
	if !j.etcdUp(b) || j.etcd.target == op.To || j.etcd.cluster == op.To {
		return
	}

	if etcdstate.Before(j.etcd.cluster) != op.To {
		j.fail("%q of an etcd %s", op, j.etcd.cluster)
	}

	for _, m := range j.members {
		if !j.etcdUp(m.box) || m.box.disrupted {
			j.fail("%q while member %s does not work", op, m.box.name)
		}
	}
}

// randomEtcd puts etcd into the state that an earlier run left.
func (t *trial) randomEtcd(random *rand.Rand) {
	lowest, highest := "", ""

	for _, m := range t.members {
		minor := m.box.etcdMinor()
		if lowest == "" || versions.Older(minor, lowest) {
			lowest = minor
		}

		if highest == "" || versions.Older(highest, minor) {
			highest = minor
		}
	}

	t.etcd = versionsOfEtcd{cluster: lowest}

	switch interrupted := random.IntN(2) == 0; {
	case !interrupted || !etcdstate.CanGoBack(highest, etcdstate.Before(highest)):
	case lowest != highest:
		t.etcd.target = lowest
	default: // a downgrade is enabled, and no machine has followed
		t.etcd.target = etcdstate.Before(highest)
		if random.IntN(2) == 0 {
			t.etcd.cluster = t.etcd.target
		}
	}

	for _, m := range t.members {
		m.box.dataOf = t.etcd.cluster
	}
}

// etcdGoesBack reports whether the change downgrades etcd.
func (t *trial) etcdGoesBack() bool {
	return versions.Older(etcdstate.OfTalos(t.new.TalosVersion), etcdstate.OfTalos(t.old.TalosVersion))
}

// mayStayOnTalos is true where the user may cancel a downgrade, once.
func (t *trial) mayStayOnTalos() bool { return t.etcdGoesBack() && t.random.IntN(2) == 0 }

func (t *trial) staysOnTalos() {
	t.new.TalosVersion = t.old.TalosVersion

	for i := range t.want.Machines {
		t.want.Machines[i].TalosVersion = t.old.TalosVersion
	}

	t.say("the user keeps Talos %s after all", t.old.TalosVersion)
}

// countEtcd counts the trials with an etcd downgrade, and those in which it was canceled.
func (t *trial) countEtcd(ends map[string]int, end string) {
	for _, op := range t.done {
		switch op.(type) {
		case step.DowngradeEtcd:
			if end == "done" && t.etcdGoesBack() {
				ends["etcd went back"]++

				return
			}
		case step.CancelEtcdDowngrade:
			ends["etcd turned back"]++

			return
		}
	}
}

// tooOldToJoin reports whether all members run a newer etcd than a machine wants.
func (t *trial) tooOldToJoin(m cluster.Machine) bool {
	return len(t.members) > 0 && !slices.ContainsFunc(t.members, func(e *etcdMember) bool {
		return !versions.Older(etcdstate.OfTalos(m.TalosVersion), e.box.etcdMinor())
	})
}
