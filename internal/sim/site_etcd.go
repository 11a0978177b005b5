package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
)

const (

	// realCordon is the least time to keep trying with a real kube-apiserver.
	realCordon = 20 * time.Second
)

// clusterMembers are the etcd members of all machines of the cluster that are on.
func (b *boot) clusterMembers() []etcd.Node {
	b.World.Lock()
	defer b.World.Unlock()

	var nodes []etcd.Node

	if b.cluster == nil {
		return nil
	}

	for _, other := range b.cluster.boots {
		if node := other.m.Disk.Etcd; node != nil {
			nodes = append(nodes, node)
		}
	}

	return nodes
}

// atLeast is a time that real parts need more of than simulated ones.
func (b *boot) atLeast(delay, least time.Duration) time.Duration {
	if b.sim.opts.Assets != "" {
		return max(delay, least)
	}

	return delay
}

// EtcdMembers returns the sorted names of the etcd members that a healthy member of any cluster of the site lists.
// Learners have the suffix " (learner)". It is meant for tests' assertions; clients ask a machine.
func (s *Simulator) EtcdMembers(ctx context.Context) ([]string, error) {
	var names []string

	seen := map[any]bool{}

	for _, m := range s.Machines() {
		b := m.current()
		if b == nil {
			continue
		}

		node := b.etcd.Node()
		if node == nil || seen[node.Group()] || node.Healthy(ctx) != nil {
			continue
		}

		seen[node.Group()] = true

		members, err := node.Members(ctx)
		if err != nil {
			return nil, fmt.Errorf("list etcd members of %s: %w", m.Name(), err)
		}

		for _, member := range members {
			suffix := ""
			if member.GetIsLearner() {
				suffix = " (learner)"
			}

			names = append(names, strings.TrimSpace(member.GetHostname()+suffix))
		}
	}

	slices.Sort(names)

	return names, nil
}

// EtcdClusters counts the separate etcd clusters on machines that are on; more than
// one for one Talos cluster means that it was bootstrapped twice.
func (s *Simulator) EtcdClusters() int {
	groups := map[any]bool{}

	for _, m := range s.Machines() {
		if b := m.current(); b != nil {
			if node := b.etcd.Node(); node != nil {
				groups[node.Group()] = true
			}
		}
	}

	return len(groups)
}

// EtcdPeers are the peer URLs of all members that the member of a machine lists, sorted, as its clients see them. It is
// meant for tests' assertions.
func (s *Simulator) EtcdPeers(ctx context.Context, m *Machine) ([]string, error) {
	b := m.current()
	if b == nil || b.etcd.Node() == nil {
		return nil, etcd.Refused(m.Address().String())
	}

	members, err := b.etcd.Node().Members(ctx)
	if err != nil {
		return nil, fmt.Errorf("list etcd members of %s: %w", m.Name(), err)
	}

	var peers []string
	for _, member := range advertised(members, s.advertised) {
		peers = append(peers, member.GetPeerUrls()...)
	}

	slices.Sort(peers)

	return peers, nil
}
