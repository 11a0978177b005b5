package machines

import (
	"context"
	"fmt"
	"maps"
	"net/netip"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// The etcd of control planes in containers is found at addresses that outlive their pods (hostcluster.MachineState.PeerAddress). They are in
// the configurations, and only the host cluster says them, once it made what a machine needs: so they are recorded, for plans that ask
// nobody. A machine is given one with its first configuration or never, because an etcd that runs does not take it.

// WithPeers is a pool whose machines are configured with the addresses that are recorded of them.
func (p MachineSet) WithPeers(recorded PriorState) MachineSet {
	if len(recorded.Peers) == 0 {
		return p
	}

	machines := maps.Clone(p.Machines)

	for name, peer := range recorded.Peers {
		if m, ok := machines[name]; ok && m.Group.Role == cluster.ControlPlane {
			m.config.PeerAddress = peer
			machines[name] = m
		}
	}

	p.Machines = machines

	return p
}

// Peers are the addresses that machines are configured with.
func (p MachineSet) Peers() map[string]string {
	peers := map[string]string{}

	for name, m := range p.Machines {
		if m.config.PeerAddress.IsValid() {
			peers[name] = m.config.PeerAddress.String()
		}
	}

	return peers
}

// Unaddressed are the control planes of a pool that are to be told an address as soon as it is known: those that have no
// configuration, as far as is recorded.
func (p MachineSet) Unaddressed(recorded PriorState) []string {
	var names []string

	for _, name := range p.names() {
		m := p.Machines[name]
		if m.Group.Role == cluster.ControlPlane && !m.config.PeerAddress.IsValid() && recorded.Machines[name].Access != cluster.Member {
			names = append(names, name)
		}
	}

	return names
}

// findPeers configures machines that are new with the addresses that the host gave them. What the host had before is seen.
func (s *session) findPeers(ctx context.Context, recorded PriorState, seen workload.Observation) error {
	names := s.Pool.Unaddressed(recorded)
	found := peersOf(names, seen)

	if len(found) < len(names) {
		now, err := s.Look(ctx)
		if err != nil {
			return err
		}

		if found = peersOf(names, now); len(found) < len(names) {
			return fmt.Errorf("make what the machines need on the host cluster: %d of the control planes %s have a Service with an address for their peers; "+
				"somebody removes it, or the host gives none", len(found), finding.Describe(names))
		}
	}

	if len(found) == 0 {
		return nil
	}

	if err := s.Pool.RefuseInnerPeers(found); err != nil {
		return err
	}

	s.Pool = s.Pool.WithPeers(PriorState{Peers: found})

	return s.render()
}

// RefuseInnerPeers is an error for addresses of peers that are in a network of the cluster: Talos takes such addresses for those of pods and Services
// of its own, does not announce etcd at them (Talos 1.13, k8s/address_filter.go and etcd/spec.go), and waits for another one for good. Those who may see
// the networks of the host learn it before anything is made.
func (p MachineSet) RefuseInnerPeers(peers map[string]netip.Addr) error {
	inner := []struct {
		attribute, what string
		networks        []netip.Prefix
	}{
		{"pod_cidrs", "pod", networksOr(p.Settings.PodCIDRs, machineconfig.ContainerPodCIDR)},
		{"service_cidrs", "service", networksOr(p.Settings.ServiceCIDRs, machineconfig.ContainerServiceCIDR)},
	}

	for _, name := range sortedNames(peers) {
		for _, own := range inner {
			for _, network := range own.networks {
				if network.Contains(peers[name]) {
					return wait.Permanent(fmt.Errorf("%s: the %s network %s of the cluster has the address %s in it that the host gave the Service of %s for its peers, "+
						"so that it overlaps with the network of Services of the host: the etcd of %[5]s would never start. No machine was configured. "+
						"Choose a network that the host does not use", own.attribute, own.what, network, peers[name], name))
				}
			}
		}
	}

	return nil
}

// render makes the configurations of the machines anew, before any of them was sent.
func (s *session) render() error {
	files, err := s.Pool.configurations()
	if err != nil {
		return err
	}

	// Whoever knows them knows the map.
	maps.Copy(s.runner.Configs, files.configs)

	for i, m := range s.want.Machines {
		s.want.Machines[i].ConfigDigest = files.Digests[m.Name]
	}

	return nil
}

func peersIn(seen workload.Observation) map[string]netip.Addr {
	return peersOf(sortedNames(seen.Machines), seen)
}

// peersOf are the addresses of some machines, without those that have none.
func peersOf(names []string, seen workload.Observation) map[string]netip.Addr {
	peers := map[string]netip.Addr{}

	for _, name := range names {
		if peer := seen.Machines[name].PeerAddress; peer.IsValid() {
			peers[name] = peer
		}
	}

	return peers
}

// RecordPeers notes the addresses of machines that were seen for the first time since they were blank: whoever configured them in between
// was a run whose state is lost, or which ended before it had their answer. Of all others it is recorded whether they have one. What a machine
// had that is gone is forgotten: the host may not have that any more.
func (h *HostReport) RecordPeers(values map[string]attr.Value, prior types.Map) {
	peers := map[string]string{}

	for name, peer := range h.Peers {
		if now, _ := peerRecord(values[name]); now == StageGone {
			continue
		}

		last, known := prior.Elements()[name]
		stage, recorded := peerRecord(last)

		if known && stage != StageGone && (recorded || stage != string(cluster.StageMaintenance)) {
			continue
		}

		peers[name] = peer.String()
	}

	annotate(values, "peer_address", peers)
}

// peerRecord is what the record of a machine says of its stage, and whether it has an address for peers.
func peerRecord(record attr.Value) (stage string, addressed bool) {
	object, ok := record.(types.Object)
	if !ok {
		return "", false
	}

	last, _ := object.Attributes()["stage"].(types.String)
	peer, _ := object.Attributes()["peer_address"].(types.String)

	return last.ValueString(), !peer.IsNull()
}
