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
	promoteRetry = 5 * time.Millisecond

	// leaveRetry replaces Talos's ten seconds between attempts to leave.
	leaveRetry = 20 * time.Millisecond
	// realLeave is the least time to keep trying with real members, which count as
	// connected only seconds after they started.
	realLeave = 30 * time.Second
	// realCordon is the least time to keep trying with a real kube-apiserver.
	realCordon = 20 * time.Second
)

func (b *boot) etcdNode() etcd.Node {
	b.World.Lock()
	defer b.World.Unlock()

	return b.m.Disk.Etcd
}

// otherMembers are the etcd members of the cluster's other machines that are on.
func (b *boot) otherMembers() []etcd.Node {
	return slices.DeleteFunc(b.clusterMembers(), func(n etcd.Node) bool { return n == b.etcdNode() })
}

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

// anyMember is what a client of all control-plane addresses ends up talking to: a
// healthy member, or else one whose error tells what is wrong.
func (b *boot) anyMember(ctx context.Context) (etcd.Node, error) {
	nodes := b.clusterMembers()
	for _, node := range nodes {
		if node.Healthy(ctx) == nil {
			return node, nil
		}
	}

	if own := b.etcdNode(); own != nil {
		return own, nil
	}

	if len(nodes) > 0 {
		return nodes[0], nil
	}

	return nil, etcd.Refused(b.m.Address().String())
}

// atLeast is a time that real parts need more of than simulated ones.
func (b *boot) atLeast(delay, least time.Duration) time.Duration {
	if b.sim.opts.Assets != "" {
		return max(delay, least)
	}

	return delay
}

// EtcdMembers returns the names of the etcd members that a healthy member of any
// cluster of the site lists, learners with the suffix " (learner)", sorted. It is
// meant for tests' assertions; clients ask a machine.
func (s *Simulator) EtcdMembers(ctx context.Context) ([]string, error) {
	var names []string

	seen := map[any]bool{}

	for _, m := range s.Machines() {
		b := m.current()
		if b == nil {
			continue
		}

		node := b.etcdNode()
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
			if node := b.etcdNode(); node != nil {
				groups[node.Group()] = true
			}
		}
	}

	return len(groups)
}

// EtcdPeers are the peer URLs of all members that the member of a machine lists, sorted, as its clients see them. It is meant for tests'
// assertions.
func (s *Simulator) EtcdPeers(ctx context.Context, m *Machine) ([]string, error) {
	b := m.current()
	if b == nil || b.etcdNode() == nil {
		return nil, etcd.Refused(m.Address().String())
	}

	members, err := b.etcdNode().Members(ctx)
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
