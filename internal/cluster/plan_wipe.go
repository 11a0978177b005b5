package cluster

import (
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// TakeOutOfEtcd decides how a control plane leaves etcd before its data is wiped, and reports whether it is out. One
// whose etcd runs leaves by itself. A member whose data is broken is removed through another control plane.
func (d *Decision) TakeOutOfEtcd(want Spec, have Snapshot, m Machine, p Policy) bool {
	want, have = want.Ordered(), have.indexed()
	s := have.Machines[m.Name]
	member, ok := have.MemberOf(m)

	switch {
	case !have.Etcd.Known:
		d.hold(m.Name, "is wiped after etcd responds%s", Because(have.Etcd.Cause))
	case !ok && mayVote(have, s):
		d.hold(m.Name, "is not wiped: its etcd runs, but its member is unknown")
	case !ok:
		return true
	case !leavesByItself(have, s):
		planExpulsion(want, have, m, member, d)
	case staysInEtcd(want, have, m, member.ID) != "":
		d.hold(m.Name, "stays in etcd for now: %s", staysInEtcd(want, have, m, member.ID))
	default:
		d.step(step.LeaveEtcd{Machine: m.Name, Member: member.ID, Evacuation: EvacuationOf(have, m, p)})
	}

	return false
}
