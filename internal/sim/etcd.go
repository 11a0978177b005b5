package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// errDataExists ends a bootstrap on a machine that has etcd data.
var errDataExists = errors.New("etcd data directory is not empty")

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
	b.sim.mu.Lock()
	defer b.sim.mu.Unlock()

	return b.m.disk.etcd
}

// otherMembers are the etcd members of the cluster's other machines that are on.
func (b *boot) otherMembers() []etcd.Node {
	return slices.DeleteFunc(b.clusterMembers(), func(n etcd.Node) bool { return n == b.etcdNode() })
}

// clusterMembers are the etcd members of all machines of the cluster that are on.
func (b *boot) clusterMembers() []etcd.Node {
	b.sim.mu.Lock()
	defer b.sim.mu.Unlock()

	var nodes []etcd.Node

	if b.cluster == nil {
		return nil
	}

	for _, other := range b.cluster.boots {
		if node := other.m.disk.etcd; node != nil {
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

// leaveForReset is the task of a graceful reset: a machine whose etcd has no data, or whose
// service does not run, has nothing to leave (Talos 1.13, LeaveEtcd).
func (b *boot) leaveForReset(ctx context.Context) error {
	state, _ := b.services.state("etcd")
	if b.etcdNode() == nil || !slices.Contains([]serviceState{serviceRunning, serviceStopping, serviceFailed}, state) {
		return nil
	}

	return b.leaveEtcd(ctx)
}

// atLeast is a time that real parts need more of than simulated ones.
func (b *boot) atLeast(delay, real time.Duration) time.Duration {
	if b.sim.opts.Assets != "" {
		return max(delay, real)
	}

	return delay
}

// leaveEtcd removes the machine's member and deletes its data, as a graceful reset and
// EtcdLeaveCluster do. Talos 1.13 reads the member's id from a resource that is there while
// etcd is healthy, and waits three minutes for it (etcd.GetLocalMemberID). It tries again
// while the cluster is not healthy, and when the member stopped: it may have removed itself
// before it could answer.
func (b *boot) leaveEtcd(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, b.atLeast(b.m.delays.EtcdMember, realLeave))
	defer cancel()

	if err := b.sim.await(limited, func() bool { return b.etcdUp && b.m.disk.etcd != nil }); err != nil {
		return fmt.Errorf("failed to leave cluster: failed to get local etcd member ID: %w", err)
	}

	return b.leaveMembers(ctx, b.etcdNode())
}

func (b *boot) leaveMembers(ctx context.Context, node etcd.Node) error {
	limit := b.atLeast(b.m.delays.EtcdLeave, realLeave)

	// Once the member has stopped, only another one can say whether it is removed.
	stopped := false

	for deadline := time.Now().Add(limit); ; {
		via, err := b.anyMember(ctx)
		if err == nil {
			err = via.Remove(ctx, node.ID())
		}

		if err == nil || errors.Is(err, etcd.ErrMemberNotFound) {
			break
		}

		stopped = stopped || errors.Is(err, etcd.ErrStopped)
		if !stopped && !errors.Is(err, etcd.ErrUnhealthy) || time.Now().After(deadline) {
			return fmt.Errorf("failed to leave cluster: failed to remove member %d: %w", node.ID(), err)
		}

		if err := timing.Pause(ctx, leaveRetry); err != nil {
			return err
		}
	}

	b.etcd.stop()
	b.services.stop("etcd")
	b.sim.update(func() { b.m.disk.etcd = nil })
	node.Wipe()

	return nil
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
			return nil, fmt.Errorf("list etcd members of %s: %w", m.name, err)
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
		return nil, fmt.Errorf("list etcd members of %s: %w", m.name, err)
	}

	var peers []string
	for _, member := range advertised(members, s.advertised) {
		peers = append(peers, member.GetPeerUrls()...)
	}

	slices.Sort(peers)

	return peers, nil
}
