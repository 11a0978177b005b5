package machines

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/record"
)

// The etcd of control planes in containers is found at addresses that outlive their pods
// (hostcluster.MachineState.PeerAddress). They are in the configurations, and only the host cluster says them, once it
// made what a machine needs: so they are recorded, for plans that ask nobody. A machine is given one with its first
// configuration or never, because an etcd that runs does not take it.

// findPeers configures machines that are new with the addresses that the host gave them. What the host had before is
// seen.
func (h *onHost) findPeers(ctx context.Context, recorded machineset.PriorState, seen workload.Observation) error {
	s := h.session
	names := s.Set.Unaddressed(recorded.Record)
	found := peersOf(names, seen)

	if len(found) < len(names) {
		now, err := h.look(ctx)
		if err != nil {
			return err
		}

		if found = peersOf(names, now); len(found) < len(names) {
			return fmt.Errorf("make what the machines need on the host cluster: %d of the control planes %s have a Service "+
				"with an address for their peers; somebody removes it, or the host gives none", len(found), finding.Describe(names))
		}
	}

	if len(found) == 0 {
		return nil
	}

	if err := s.Set.RefuseInnerPeers(found); err != nil {
		return err
	}

	s.Set = s.Set.WithPeers(found)

	return s.render()
}

// render makes the configurations of the machines anew, before any of them was sent.
func (s *session) render() error {
	files, err := s.Set.Configurations()
	if err != nil {
		return err
	}

	// Whoever knows them knows the map.
	maps.Copy(s.runner.Configs, files.Configs)

	for i, m := range s.want.Machines {
		made := files.Machines[m.Name]
		s.want.Machines[i].ConfigDigest, s.want.Machines[i].Keys = made.ConfigDigest, made.Keys
	}

	return nil
}

func peersIn(seen workload.Observation) map[string]netip.Addr {
	return peersOf(slices.Sorted(maps.Keys(seen.Machines)), seen)
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

// recordPeers notes the addresses of machines that were seen for the first time since they were blank: whoever
// configured them in between was a run whose state is lost, or which ended before it had their answer. Of all others it
// is recorded whether they have one. What a machine had that is gone is forgotten: the host may not have that any more.
func (h hostReport) recordPeers(seen, last record.Machines) {
	for name, peer := range h.peers {
		before, known := last[name]

		switch {
		case seen[name].Stage == record.StageGone:
		case known && before.Stage != record.StageGone &&
			(before.PeerAddress != "" || before.Stage != step.StageMaintenance):
		default:
			seen.Change(name, func(m *record.Machine) { m.PeerAddress = peer.String() })
		}
	}
}
