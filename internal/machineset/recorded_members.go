package machineset

import (
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

// recordedMembers are the members of etcd by what state recorded of the control planes of a change.
type recordedMembers struct {
	// count is how many there are, with those that leave.
	count int
	// leaving are the control planes that are removed, and staying those that stay and work.
	leaving, staying []string
	// lost are the control planes whose data is gone, be they removed or not.
	lost []string
}

// losesAll reports whether the data of etcd goes with those that leave.
func (r recordedMembers) losesAll() bool { return len(r.leaving) > 0 && len(r.staying) == 0 }

// losesQuorum reports whether less than a majority is left to remove members and to add others.
func (r recordedMembers) losesQuorum() bool { return r.count-len(r.lost) < etcdstate.Majority(r.count) }

// membersOnRecord sorts the control planes of a change by what state recorded of them. Removing many
// machines at once loses no quorum, since they leave one by one.
func membersOnRecord(want cluster.Spec, recorded map[string]cluster.MachineState) recordedMembers {
	var r recordedMembers

	for _, m := range cluster.OfRole(want.Removed, step.ControlPlane) {
		r.leaving = append(r.leaving, m.Name)

		s := recorded[m.Name]
		if s.Access == step.Foreign || (s.Access == step.Maintenance || s.VolumesLost) && m.MemberID != "" {
			r.lost = append(r.lost, m.Name)
		}
	}

	r.count = len(r.leaving)

	for _, m := range cluster.OfRole(want.Machines, step.ControlPlane) {
		switch {
		case recorded[m.Name].Access == step.Member:
			r.staying = append(r.staying, m.Name)
			r.count++
		case m.Joined:
			r.lost = append(r.lost, m.Name)
			r.count++
		}
	}

	return r
}
