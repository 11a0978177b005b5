package talossim

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
)

// realEtcd runs an etcd process per control-plane machine on the machine's own
// address, ports 2379 and 2380, with certificates of the configuration's etcd CA.
type realEtcd struct {
	parts *realParts

	mu      sync.Mutex
	members []*realMember
}

// realGroup is the identity of one real etcd cluster.
type realGroup struct {
	mu      sync.Mutex
	members []*realMember
}

// realMember is one data directory, and its process while it runs.
type realMember struct {
	backend *realEtcd
	cluster *realGroup
	name    string
	host    string
	dir     string
	initial string // --initial-cluster
	state   string // --initial-cluster-state
	client  *etcdClient

	mu       sync.Mutex
	memberID uint64
	proc     *child
}

func (e *realEtcd) newMember(b *boot, g *realGroup) (*realMember, error) {
	m := &realMember{
		backend: e, cluster: g, name: b.hostname(), host: b.m.addr.String(),
		dir: filepath.Join(e.parts.dir, b.m.name+"-etcd-"+uuid.NewString()[:8]),
	}

	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make etcd folder: %w", err)
	}

	ca, pair, err := b.etcdAuthority()
	if err != nil {
		return nil, err
	}

	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	server := leaf{
		commonName: m.name, ips: []net.IP{b.m.addr.AsSlice(), net.IPv4(127, 0, 0, 1)},
		dns: []string{"localhost", m.name}, usage: both,
	}

	// etcd's JSON gateway is a client of its own server, hence both usages.
	err = errors.Join(
		writeFile(m.dir, "ca.crt", pair.Crt),
		writePair(m.dir, "server", ca, server),
		writePair(m.dir, "peer", ca, server),
		writePair(m.dir, "admin", ca, leaf{commonName: "talos", usage: both[1:]}),
	)
	if err != nil {
		return nil, err
	}

	if m.client, err = newEtcdClient(m.dir, m.host); err != nil {
		return nil, err
	}

	g.mu.Lock()
	g.members = append(g.members, m)
	g.mu.Unlock()

	e.mu.Lock()
	e.members = append(e.members, m)
	e.mu.Unlock()

	return m, nil
}

func (e *realEtcd) create(b *boot) (etcdNode, error) {
	m, err := e.newMember(b, &realGroup{})
	if err != nil {
		return nil, err
	}

	m.initial, m.state = m.name+"="+m.peerURL(), "new"

	return m, nil
}

func (e *realEtcd) join(ctx context.Context, b *boot, via etcdNode) (etcdNode, error) {
	other, ok := via.(*realMember)
	if !ok {
		return nil, fmt.Errorf("join etcd through %T", via)
	}

	existing, err := other.members(ctx)
	if err != nil {
		return nil, err
	}

	name, peer := b.hostname(), "https://"+b.m.addr.String()+":2380"

	for _, member := range existing {
		if member.GetHostname() == name {
			if err := other.remove(ctx, member.GetId()); err != nil {
				return nil, err
			}
		}
	}

	id, err := other.client.addLearner(ctx, peer)
	if err != nil {
		return nil, err
	}

	all, err := other.members(ctx)
	if err != nil {
		return nil, err
	}

	m, err := e.newMember(b, other.cluster)
	if err != nil {
		return nil, err
	}

	m.memberID, m.state = id, "existing"

	var initial []string

	for _, member := range all {
		memberName := member.GetHostname()
		if member.GetId() == id {
			memberName = name
		}

		for _, url := range member.GetPeerUrls() {
			initial = append(initial, memberName+"="+url)
		}
	}

	m.initial = strings.Join(initial, ",")

	return m, nil
}

func (e *realEtcd) close() error {
	e.mu.Lock()
	members := slices.Clone(e.members)
	e.mu.Unlock()

	var stopping sync.WaitGroup

	for _, m := range members {
		stopping.Go(func() {
			m.halt()
			m.client.close()
		})
	}

	stopping.Wait()

	return nil
}

func (m *realMember) peerURL() string { return "https://" + m.host + ":2380" }

func (m *realMember) run(ctx context.Context) error {
	file := func(name string) string { return filepath.Join(m.dir, name) }
	clientURL := "https://" + m.host + ":2379"

	proc, err := m.backend.parts.nursery.start("etcd of "+m.name, m.backend.parts.etcd, file("etcd.log"),
		"--name="+m.name, "--data-dir="+file("data"),
		"--listen-client-urls="+clientURL, "--advertise-client-urls="+clientURL,
		"--listen-peer-urls="+m.peerURL(), "--initial-advertise-peer-urls="+m.peerURL(),
		"--initial-cluster="+m.initial, "--initial-cluster-state="+m.state,
		"--client-cert-auth=true", "--cert-file="+file("server.crt"), "--key-file="+file("server.key"),
		"--trusted-ca-file="+file("ca.crt"),
		"--peer-client-cert-auth=true", "--peer-cert-file="+file("peer.crt"), "--peer-key-file="+file("peer.key"),
		"--peer-trusted-ca-file="+file("ca.crt"),
		"--logger=zap", "--log-level=warn", "--unsafe-no-fsync",
	)
	if err != nil {
		return err
	}

	m.mu.Lock()
	m.proc = proc
	m.mu.Unlock()

	err = proc.awaitServing(ctx, func(ctx context.Context) error {
		st, err := m.status(ctx)
		if err == nil {
			m.mu.Lock()
			m.memberID = st.GetMemberId()
			m.mu.Unlock()
		}

		return err
	})
	if err != nil {
		m.halt()
	}

	return err
}

func (m *realMember) halt() {
	m.mu.Lock()
	proc := m.proc
	m.proc = nil
	m.mu.Unlock()

	if proc != nil {
		proc.stop()
		m.client.close()
	}
}

func (m *realMember) wipe() {
	m.halt()

	m.cluster.mu.Lock()
	m.cluster.members = slices.DeleteFunc(m.cluster.members, func(other *realMember) bool { return other == m })
	m.cluster.mu.Unlock()

	if err := os.RemoveAll(m.dir); err != nil {
		m.backend.parts.sim.logf("remove etcd data of %s: %v", m.name, err)
	}
}

func (m *realMember) id() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.memberID
}

func (m *realMember) running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.proc != nil
}

func (m *realMember) group() any { return m.cluster }

func (m *realMember) healthy(ctx context.Context) error {
	if !m.running() {
		return etcdRefused(m.host)
	}

	return m.client.readKey(ctx)
}

func (m *realMember) members(ctx context.Context) ([]*machine.EtcdMember, error) {
	return m.client.members(ctx)
}

func (m *realMember) status(ctx context.Context) (*machine.EtcdMemberStatus, error) {
	return m.client.status(ctx)
}

func (m *realMember) remove(ctx context.Context, id uint64) error { return m.client.remove(ctx, id) }

func (m *realMember) promote(ctx context.Context, via etcdNode) error {
	other, ok := via.(*realMember)
	if !ok || other.cluster != m.cluster {
		return errMemberNotFound
	}

	return other.client.promote(ctx, m.id())
}

func (m *realMember) moveLeader(ctx context.Context) (string, error) {
	st, err := m.status(ctx)
	if err != nil {
		return "", err
	}

	if st.GetLeader() != st.GetMemberId() {
		return "", nil
	}

	members, err := m.members(ctx)
	if err != nil {
		return "", err
	}

	for _, other := range members {
		if other.GetId() != st.GetMemberId() && !other.GetIsLearner() {
			return other.GetHostname(), m.client.transferLeadership(ctx, other.GetId())
		}
	}

	return "", errNotEnough
}

func (m *realMember) snapshot(ctx context.Context, w io.Writer) error {
	return m.client.snapshot(ctx, w)
}

func (m *realMember) alarms(ctx context.Context) ([]*machine.EtcdMemberAlarm, error) {
	return m.client.alarm(ctx, "GET", nil)
}

// disarm ends the alarms one by one, as etcd's client does.
func (m *realMember) disarm(ctx context.Context) ([]*machine.EtcdMemberAlarm, error) {
	raised, err := m.alarms(ctx)
	if err != nil {
		return nil, err
	}

	var ended []*machine.EtcdMemberAlarm

	for _, alarm := range raised {
		one, err := m.client.alarm(ctx, "DEACTIVATE", alarm)
		if err != nil {
			return nil, err
		}

		ended = append(ended, one...)
	}

	return ended, nil
}

func (m *realMember) raise(ctx context.Context, alarm EtcdAlarm) error {
	_, err := m.client.alarm(ctx, "ACTIVATE", &machine.EtcdMemberAlarm{MemberId: m.id(), Alarm: alarm})

	return err
}

func (m *realMember) defragment(ctx context.Context) error { return m.client.defragment(ctx) }
