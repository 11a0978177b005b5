package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	etcdres "github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// etcdBackend makes etcd members: in this process, or as real etcd processes.
type etcdBackend interface {
	// create makes the data directory of the first member of a new etcd cluster.
	create(b *boot) (etcdNode, error)
	// restore is create with the data of a snapshot file. After an error there may be a
	// node all the same: what was left in the data directory.
	restore(b *boot, snapshot string, skipHashCheck bool) (etcdNode, error)
	// join adds the machine to via's etcd cluster as a learner and makes its data
	// directory. A stale member of the same name is removed first, as Talos does.
	join(ctx context.Context, b *boot, via etcdNode) (etcdNode, error)
	// close stops everything the backend started and removes its files.
	close() error
}

// etcdNode is the etcd data directory of one machine and, between run and halt, the
// process on it. Errors carry etcd's own texts.
type etcdNode interface {
	// move tells the member, while it does not run, which address its machine has now.
	move(b *boot) error
	run(ctx context.Context) error
	halt()
	// wipe halts and deletes the data. The cluster still lists the member.
	wipe()
	id() uint64
	// group is equal for members of the same etcd cluster.
	group() any
	// healthy is a linearizable read: it fails without quorum and on learners.
	healthy(ctx context.Context) error
	members(ctx context.Context) ([]*machine.EtcdMember, error)
	status(ctx context.Context) (*machine.EtcdMemberStatus, error)
	remove(ctx context.Context, id uint64) error
	// promote asks another member to make this learner a voter.
	promote(ctx context.Context, via etcdNode) error
	// advertise makes the cluster list the member's peer URL as it is now.
	advertise(ctx context.Context) error
	// moveLeader hands leadership over; it returns "" when this is not the leader.
	moveLeader(ctx context.Context) (string, error)
	snapshot(ctx context.Context, w io.Writer) error
	// raftSnapshots are the files below member/snap, by name, and when they were made.
	raftSnapshots() (map[string]time.Time, error)
	// put writes keys; keys reads those with a prefix.
	put(ctx context.Context, values map[string]string) error
	keys(ctx context.Context, prefix string) (map[string]string, error)
	// alarms are those of all members; disarm ends them and returns what it ended.
	alarms(ctx context.Context) ([]*machine.EtcdMemberAlarm, error)
	disarm(ctx context.Context) ([]*machine.EtcdMemberAlarm, error)
	// raise raises an alarm of this member.
	raise(ctx context.Context, alarm EtcdAlarm) error
	defragment(ctx context.Context) error
}

// etcd's texts that callers tell apart.
var (
	errMemberNotFound  = errors.New("etcdserver: member not found")
	errUnhealthy       = errors.New("etcdserver: unhealthy cluster")
	errNotEnough       = errors.New("etcdserver: re-configuration failed due to not enough started members")
	errTooManyLearners = errors.New("etcdserver: too many learner members in cluster")
	errNotReady        = errors.New("etcdserver: can only promote a learner member which is in sync with leader")
	errNoLeader        = errors.New("etcdserver: no leader")
	errTimedOut        = errors.New("etcdserver: request timed out")
	errLearner         = errors.New("etcdserver: rpc not supported for learner")
	errStopped         = errors.New("etcdserver: server stopped")
	errNoSpace         = errors.New("etcdserver: mvcc: database space exceeded")
	errCorrupt         = errors.New("etcdserver: corrupt cluster")
	errBadTransferee   = errors.New("etcdserver: bad leader transferee")
	errPeerExists      = errors.New("etcdserver: Peer URLs already exists")
	// errTransferTimedOut is one that clients never see: their request ends with it.
	errTransferTimedOut = errors.New("etcdserver: request timed out, leader transfer took too long")
)

// errDataExists ends a bootstrap on a machine that has etcd data.
var errDataExists = errors.New("etcd data directory is not empty")

const (
	// joinRetry and promoteRetry replace Talos's 3 and 15 seconds between attempts.
	joinRetry    = 5 * time.Millisecond
	promoteRetry = 5 * time.Millisecond
	// healthPeriod is how often etcd's health is checked besides after changes.
	healthPeriod = 250 * time.Millisecond
	// leaveRetry replaces Talos's ten seconds between attempts to leave.
	leaveRetry = 20 * time.Millisecond
	// realLeave is the least time to keep trying with real members, which count as
	// connected only seconds after they started.
	realLeave = 30 * time.Second
	// realCordon is the least time to keep trying with a real kube-apiserver.
	realCordon = 20 * time.Second
)

// memberID is a member's id as it is written everywhere.
func memberID(id uint64) string { return etcdres.FormatMemberID(id) }

func (b *boot) etcdNode() etcdNode {
	b.sim.mu.Lock()
	defer b.sim.mu.Unlock()

	return b.m.disk.etcd
}

// otherMembers are the etcd members of the cluster's other machines that are on.
func (b *boot) otherMembers() []etcdNode {
	return slices.DeleteFunc(b.clusterMembers(), func(n etcdNode) bool { return n == b.etcdNode() })
}

// clusterMembers are the etcd members of all machines of the cluster that are on.
func (b *boot) clusterMembers() []etcdNode {
	b.sim.mu.Lock()
	defer b.sim.mu.Unlock()

	var nodes []etcdNode

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
func (b *boot) anyMember(ctx context.Context) (etcdNode, error) {
	nodes := b.clusterMembers()
	for _, node := range nodes {
		if node.healthy(ctx) == nil {
			return node, nil
		}
	}

	if own := b.etcdNode(); own != nil {
		return own, nil
	}

	if len(nodes) > 0 {
		return nodes[0], nil
	}

	return nil, etcdRefused(b.m.Address().String())
}

// etcdRefused is the error of a client whose etcd does not listen.
func etcdRefused(addr string) error {
	return status.Errorf(codes.Unavailable,
		`connection error: desc = "transport: Error while dialing: dial tcp %s:2379: connect: connection refused"`, addr)
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

func (b *boot) leaveMembers(ctx context.Context, node etcdNode) error {
	limit := b.atLeast(b.m.delays.EtcdLeave, realLeave)

	// Once the member has stopped, only another one can say whether it is removed.
	stopped := false

	for deadline := time.Now().Add(limit); ; {
		via, err := b.anyMember(ctx)
		if err == nil {
			err = via.remove(ctx, node.id())
		}

		if err == nil || errors.Is(err, errMemberNotFound) {
			break
		}

		stopped = stopped || errors.Is(err, errStopped)
		if !stopped && !errors.Is(err, errUnhealthy) || time.Now().After(deadline) {
			return fmt.Errorf("failed to leave cluster: failed to remove member %d: %w", node.id(), err)
		}

		if err := timing.Pause(ctx, leaveRetry); err != nil {
			return err
		}
	}

	b.etcd.stop()
	b.services.stop("etcd")
	b.sim.update(func() { b.m.disk.etcd = nil })
	node.wipe()

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
		if node == nil || seen[node.group()] || node.healthy(ctx) != nil {
			continue
		}

		seen[node.group()] = true

		members, err := node.members(ctx)
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
				groups[node.group()] = true
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
		return nil, etcdRefused(m.Address().String())
	}

	members, err := b.etcdNode().members(ctx)
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
