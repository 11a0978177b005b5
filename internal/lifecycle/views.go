package lifecycle

import (
	"context"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/etcdstate"
)

// Etcd as each of its members sees it. Runs ask it before they take a machine out of service, and refreshes ask it
// for health.

// withViews lets an observer read the views.
func (o *observer) withViews() *observer {
	o.views = map[string]etcdstate.View{}

	return o
}

// withoutEtcd makes an observer ignore etcd. A teardown does not depend on it, and an etcd without quorum would
// answer late in every observation.
func (o *observer) withoutEtcd() *observer {
	o.etcdAside = true

	return o
}

// view asks a control plane for its view of etcd; nil if it has none, or if the run reads none.
func (o *observer) view(ctx context.Context, m cluster.Machine, api Machine, s step.MachineState) *etcdstate.View {
	if o.views == nil || m.Role != step.ControlPlane || s.Access != step.Member || s.EtcdDown() {
		return nil
	}

	view, err := api.EtcdView(ctx)
	if err != nil {
		return nil
	}

	return &view
}

// addViews completes a snapshot with the views, and with the machines of members that the spec does not know. Those
// are asked from the next observation on.
func (o *observer) addViews(have *cluster.Snapshot) {
	if o.views == nil {
		return
	}

	o.mu.Lock()
	defer o.mu.Unlock()

	have.Etcd.Views = map[string]etcdstate.View{}

	// A peer that became a machine of the spec is asked under that name, and its last answer as a peer is outdated.
	for _, m := range append(o.known, o.peers...) {
		if view, seen := o.views[m.Name]; seen {
			have.Etcd.Views[view.Member] = view

			s := have.Machines[m.Name]
			s.MemberID = view.Member
			have.Machines[m.Name] = s
		}
	}

	have.Peers = map[string]step.MachineState{}
	peers := o.peers[:0:0]

	for _, member := range cluster.Unowned(o.want, *have) {
		address := member.Host()
		if address == "" {
			continue
		}

		m := cluster.MachineAt(cluster.PeerName(member), step.ControlPlane, address)
		peers = append(peers, m)

		if s, asked := o.states[m.Name]; asked {
			have.Peers[member.ID] = s
		}
	}

	switch {
	case have.Etcd.Known:
		o.peers = peers
	case len(o.peers) == 0:
		o.peers = peersByNode(o.want, *have)
	}
}

// peersByNode are the control planes of other resources from Kubernetes. They are asked about etcd when no machine of
// the spec can answer.
func peersByNode(want cluster.Spec, have cluster.Snapshot) []cluster.Machine {
	var peers []cluster.Machine

	for _, node := range cluster.OtherNodesAtWork(want, have) {
		if address := node.Address(); address != "" {
			peers = append(peers, cluster.MachineAt(cluster.PeerName(etcdstate.Member{Name: node.Name}),
				step.ControlPlane, address))
		}
	}

	return peers
}
