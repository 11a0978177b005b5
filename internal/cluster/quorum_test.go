package cluster_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

// Another control plane left and is off, and a machine joined elsewhere under its node name: the member is that of this
// machine, which is asked at its own address. A machine that answers has the member whatever its address, as behind a
// NAT.
func TestUnowned_successorUnderTheSameName(t *testing.T) {
	t.Parallel()

	successor := etcdstate.Member{ID: "b", Name: "cp-2", PeerURLs: []string{"https://10.0.0.8:2380"}}

	for access, unowned := range map[step.Access]int{step.Unreachable: 1, step.Maintenance: 1, step.Member: 0} {
		left := cluster.MachineAt("10.0.0.2", step.ControlPlane, "10.0.0.2")
		want := cluster.Spec{OtherControlPlanes: []cluster.Machine{left}}
		have := cluster.Snapshot{Etcd: etcdstate.State{Known: true, Members: []etcdstate.Member{successor}},
			Machines: map[string]step.MachineState{"10.0.0.2": {Access: access, NodeName: "cp-2"}}}

		if found := cluster.Unowned(want, have); len(found) != unowned {
			t.Errorf("%s: the members of unknown machines are %v", access, found)
		}
	}
}
