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

// The etcd of control planes in containers has addresses that outlive their pods
// (hostcluster.MachineState.PeerAddress). They are in the configurations, and only the host cluster knows them, once
// it has created the objects of a machine. So they are recorded, for plans, which ask no host. A machine gets one
// with its first configuration or never, because a running etcd does not accept a change.

// findPeers configures new machines with their addresses from the host. seen is what the host had before.
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
			return fmt.Errorf("create the objects of the machines on the host cluster: only %d of the control planes %s have a "+
				"Service with an address for etcd peers. Another client removes the Services, or the host assigns no address",
				len(found), finding.Describe(names))
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

// render renders the configurations of the machines again, before any of them is sent.
func (s *session) render() error {
	files, err := s.Set.Configurations()
	if err != nil {
		return err
	}

	// Other holders of the configurations share this map.
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

// peersOf are the addresses of machines, without those that have none.
func peersOf(names []string, seen workload.Observation) map[string]netip.Addr {
	peers := map[string]netip.Addr{}

	for _, name := range names {
		if peer := seen.Machines[name].PeerAddress; peer.IsValid() {
			peers[name] = peer
		}
	}

	return peers
}

// recordPeers notes the addresses of machines that are observed for the first time since they were blank. They were
// configured by a run whose state is lost, or which ended before their answer. For all others it records whether
// they have one. It drops the address of a machine that is gone: the host may not have it any more.
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
