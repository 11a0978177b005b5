package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/sim/objects"
	"github.com/talosop/terraform-provider-talosop/internal/sim/world"
)

// Model is the etcd stand-in: membership, leadership and quorum. Its keys are the objects
// of the Kubernetes stand-in and what tests put.
type Model struct {
	World  *world.World
	Follow time.Duration // how long etcd takes to follow the versions of its members
}

// ModelCluster is one etcd cluster. All of it but the content of store is guarded by the world.
type ModelCluster struct {
	world   *world.World
	Store   *objects.Store
	members []*modelMember
	Leader  *modelMember
	term    uint64
	index   uint64
	alarms  []*machine.EtcdMemberAlarm
	version agreedVersion
}

// modelMember is one member; it implements Node.
type modelMember struct {
	world     *world.World
	c         *ModelCluster
	memberID  uint64
	name      string
	host      string // where it is
	announced string // what it says of itself
	peer      string // where the cluster looks for it
	learner   bool
	started   bool // ran at least once, so that its name is known to the cluster
	running   bool
	destroyed bool
	compact   bool // defragmented
	restored  time.Time
	server    string // the version that it runs
	data      string // the minor version that its database is for
}

// Create implements [Backend].
func (e *Model) Create(h Host) (Node, error) {
	return e.newMember(h), nil
}

// Join follows addMember of Talos and the checks of etcd for a learner.
func (e *Model) Join(_ context.Context, h Host, via Node) (Node, error) {
	other, ok := via.(*modelMember)
	if !ok {
		return nil, fmt.Errorf("join etcd through %T", via)
	}

	name := h.Hostname

	e.World.Lock()
	defer e.World.Unlock()

	c := other.c

	if err := other.serving(); err != nil {
		return nil, err
	}

	for _, m := range c.members {
		if m.started && m.name == name {
			if err := c.removable(m); err != nil {
				return nil, err
			}

			c.drop(m)
		}
	}

	for _, m := range c.members {
		switch {
		case m.learner:
			return nil, errTooManyLearners
		case !m.running:
			return nil, ErrUnhealthy
		}
	}

	m := &modelMember{world: e.World, c: c, memberID: rand.Uint64(), name: name, learner: true}
	m.settle(h)
	m.peer = m.announced

	if slices.ContainsFunc(c.members, func(other *modelMember) bool { return other.peer == m.peer }) {
		return nil, errPeerExists
	}

	c.members = append(c.members, m)
	c.index++
	e.World.Notify()

	return m, nil
}

// Close implements [Backend].
func (e *Model) Close() error { return nil }

// serving reports whether the member can be asked; the world is locked.
func (m *modelMember) serving() error {
	switch {
	case !m.running:
		return Refused(m.host)
	case m.learner:
		return errLearner
	case m.c.Leader == nil || !m.reaches(m.c.Leader):
		return errNoLeader
	default:
		return nil
	}
}

func (m *modelMember) Move(h Host) error {
	m.world.Update(func() { m.settle(h) })

	return nil
}

// settle notes where the member's machine is, and what it announces; the world is locked.
func (m *modelMember) settle(h Host) {
	m.host, m.announced, m.server = h.Address.String(), h.Announced.String(), h.Version
}

func (m *modelMember) Advertise(context.Context) error {
	m.world.Lock()
	defer m.world.Unlock()

	// It takes a quorum, which may have been lost since the look at the member's health.
	if err := m.serving(); err != nil {
		return err
	}

	if m.peer != m.announced {
		m.peer = m.announced
		m.c.index++
		m.c.elect()
		m.world.Notify()
	}

	return nil
}

func (m *modelMember) Run(ctx context.Context) error {
	if err := m.awaitVersion(ctx); err != nil {
		return err
	}

	m.world.Update(func() {
		m.running, m.started = m.c.has(m), true
		m.c.elect()
	})

	return nil
}

func (m *modelMember) Halt() {
	m.world.Update(func() {
		m.running = false
		m.c.elect()
	})
}

func (m *modelMember) Wipe() {
	m.world.Update(func() {
		m.running, m.destroyed = false, true
		m.c.elect()
	})
}

func (m *modelMember) ID() uint64 { return m.memberID }

func (m *modelMember) Group() any { return m.c }

func (m *modelMember) Healthy(context.Context) error {
	m.world.Lock()
	defer m.world.Unlock()

	err := m.serving()

	switch {
	case err == errNoLeader: //nolint:errorlint // a read times out instead
		return ErrTimedOut
	case err == nil && m.c.alarmed(Corrupt):
		return errCorrupt
	default:
		return err
	}
}

func (m *modelMember) Members(context.Context) ([]*machine.EtcdMember, error) {
	m.world.Lock()
	defer m.world.Unlock()

	if err := m.serving(); err != nil {
		return nil, err
	}

	list := make([]*machine.EtcdMember, 0, len(m.c.members))

	for _, other := range m.c.listed() {
		member := &machine.EtcdMember{
			Id: other.memberID, IsLearner: other.learner, PeerUrls: []string{"https://" + other.peer + ":2380"},
		}
		if other.started {
			member.Hostname = other.name
			member.ClientUrls = []string{"https://" + other.announced + ":2379"}
		}

		list = append(list, member)
	}

	return list, nil
}

func (m *modelMember) Status(context.Context) (*machine.EtcdMemberStatus, error) {
	m.world.Lock()
	defer m.world.Unlock()

	if !m.running {
		return nil, Refused(m.host)
	}

	m.c.followVersions()

	st := &machine.EtcdMemberStatus{
		MemberId: m.memberID, ProtocolVersion: m.server, StorageVersion: m.data + ".0", DbSize: 1 << 20, DbSizeInUse: 1 << 19,
		RaftIndex: m.c.index, RaftAppliedIndex: m.c.index, RaftTerm: m.c.term, IsLearner: m.learner,
	}

	if m.compact {
		st.DbSize = st.DbSizeInUse
	}

	if m.c.Leader != nil {
		st.Leader = m.c.Leader.memberID
	} else {
		st.Errors = append(st.Errors, errNoLeader.Error())
	}

	// The trailing blank is that of etcd's AlarmMember.String.
	for _, a := range m.c.alarms {
		st.Errors = append(st.Errors, fmt.Sprintf("memberID:%d alarm:%s ", a.GetMemberId(), a.GetAlarm()))
	}

	return st, nil
}

func (m *modelMember) Remove(_ context.Context, id uint64) error {
	m.world.Lock()
	defer m.world.Unlock()

	if err := m.serving(); err != nil {
		return err
	}

	for _, other := range m.c.members {
		if other.memberID != id {
			continue
		}

		if err := m.c.removable(other); err != nil {
			return err
		}

		other.running = false
		m.c.drop(other)
		m.world.Notify()

		return nil
	}

	return ErrMemberNotFound
}

func (m *modelMember) Promote(_ context.Context, via Node) error {
	m.world.Lock()
	defer m.world.Unlock()

	other, ok := via.(*modelMember)
	if !ok || other.c != m.c {
		return ErrMemberNotFound
	}

	if err := other.serving(); err != nil {
		return err
	}

	switch {
	case !m.c.has(m):
		return ErrMemberNotFound
	case !m.running:
		return errNotReady
	}

	m.learner = false
	m.c.index++
	m.c.elect()
	m.world.Notify()

	return nil
}

// MoveLeader hands over to the first other member, whatever it is (Talos 1.13,
// etcd.ForfeitLeadership).
func (m *modelMember) MoveLeader(ctx context.Context) (string, error) {
	name, err := m.forfeit()
	if errors.Is(err, errTransferTimedOut) {
		<-ctx.Done()

		return "", status.FromContextError(ctx.Err()).Err()
	}

	return name, err
}

func (m *modelMember) forfeit() (string, error) {
	m.world.Lock()
	defer m.world.Unlock()

	if err := m.serving(); err != nil {
		return "", err
	}

	if m.c.Leader != m {
		return "", nil
	}

	for _, other := range m.c.listed() {
		if other != m {
			return other.name, m.c.transfer(other)
		}
	}

	return "", nil
}

// transfer makes a voter the leader. One that does not run never takes over: etcd tries
// until the request ends (etcd 3.6, server.MoveLeader). the world is locked.
func (c *ModelCluster) transfer(to *modelMember) error {
	switch {
	case to.learner:
		return errBadTransferee
	case !to.running || !to.reaches(c.Leader):
		return errTransferTimedOut
	}

	c.Leader = to
	c.term++
	to.world.Notify()

	return nil
}

// listed are the members in the order in which etcd lists them.
func (c *ModelCluster) listed() []*modelMember {
	return slices.SortedFunc(slices.Values(c.members),
		func(a, b *modelMember) int { return cmp.Compare(a.memberID, b.memberID) })
}

// Snapshot is a database that etcd's own tools read.
func (m *modelMember) Snapshot(_ context.Context, w io.Writer) error {
	m.world.Lock()
	running, store := m.running, m.c.Store
	m.world.Unlock()

	if !running {
		return Refused(m.host)
	}

	if err := store.WriteSnapshot(w); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}

	return nil
}
