package cluster

import (
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// Preflight says why a step from an earlier decision must no longer take its machine out of service, or begin an
// etcd; empty when it still may. An image pull, a drain and an installer come between the decision and the effect,
// and the state may have changed. have is an observation after all of them.
func Preflight(want Spec, have Snapshot, p Policy, op step.Step) string {
	want, have = want.Ordered(), have.indexed()

	m, ok := want.Find(op.On())
	want = want.withoutWaiting(have, p).withoutScaledIn(have)

	switch {
	case ok && m.unmanaged() && !want.changesOnly(have, m.Name):
		return "its node was deleted, or another machine responds"
	case ok && step.BeginsEtcd(op):
		return begunElsewhere(want, have, m)
	case ok && op.ChangesEtcd():
		if _, cancels := op.(step.CancelEtcdDowngrade); cancels {
			return ""
		}

		return etcdNotWhole(want, have, m)
	case !ok || !op.Disrupts():
		return ""
	}

	if m.Role == step.ControlPlane && !hasEtcd(want, have) {
		return ""
	}

	return staysForNow(want, have, m, p, op)
}

// staysForNow says why a disruptive step must wait.
func staysForNow(want Spec, have Snapshot, m Machine, p Policy, op step.Step) string {
	switch s := op.(type) {
	case step.RemoveMember:
		if reason := wasRemoved(have, s.Member); reason != "" {
			return reason
		}

		q := quorumOf(want, have)
		if q.Healthy[s.Member] {
			return "etcd member " + s.Member + " is healthy"
		}

		if reason := staysForReplacement(want, have, p); reason != "" {
			return reason
		}

		return q.Without(s.Member)
	case step.LeaveEtcd:
		if reason := wasRemoved(have, s.Member); reason != "" {
			return reason
		}

		if reason := staysForReplacement(want, have, p); reason != "" {
			return reason
		}

		return staysInEtcd(want, have, m, s.Member)
	case step.UpgradeComponent:
		if m.Role == step.Worker {
			return staysInService(want, have, m, p)
		}

		return othersUnfit(want, have, m) // its etcd continues to run
	case step.ReplaceVolumes:
		if !have.Machines[m.Name].VolumesLost {
			return "its volumes are available again"
		}

		return dataNeeded(want, have, m)
	case step.Upgrade, step.ApplyConfig, step.Reset, step.Operate:
		return staysAtWork(want, have, m, p, op)
	default:
		return ""
	}
}

// wasRemoved says that etcd no longer has a member.
func wasRemoved(have Snapshot, member string) string {
	if _, listed := have.Etcd.Member(member); have.Etcd.Known && !listed {
		return "etcd member " + member + " was removed"
	}

	return ""
}

// staysAtWork says why a machine must not be taken out of service by a step.
func staysAtWork(want Spec, have Snapshot, m Machine, p Policy, op step.Step) string {
	if have.Machines[m.Name].Access == step.Maintenance {
		return "" // no workload uses it
	}

	if m.Role == step.Worker {
		return staysInService(want, have, m, p)
	}

	if reset, ok := op.(step.Reset); ok && reset.Shared {
		return ""
	}

	if operate, ok := op.(step.Operate); ok && operate.LosesEtcd() {
		if member, ok := have.MemberOf(m); ok {
			return "its etcd data belongs to member " + member.ID
		}
	}

	if upgrade, ok := op.(step.Upgrade); ok {
		if upgrade.Loses {
			if reason, _ := dataStays(want, have, m); reason != "" {
				return reason
			}
		}

		if reason, _ := etcdFirst(want, have, upgrade); reason != "" {
			return reason
		}
	}

	reason, _ := gate(want, have, m, p)

	return reason
}

// staysInEtcd says why a control plane must not leave etcd.
func staysInEtcd(want Spec, have Snapshot, m Machine, member string) string {
	if reason := othersUnfit(want, have, m); reason != "" {
		return reason
	}

	if reason := have.Etcd.DiscordWithout(member); reason != "" {
		return reason
	}

	return quorumOf(want, have).Without(member)
}

// staysInService says why a worker must not go out of service.
func staysInService(want Spec, have Snapshot, m Machine, p Policy) string {
	if reason := workersMustStay(want, have); reason != "" {
		return reason
	}

	b := budgetOf(want, have, m.Pool, p)
	b.down = slices.DeleteFunc(b.down, func(name string) bool { return name == m.Name })

	if len(b.down) >= b.limit {
		return b.String()
	}

	return ""
}
