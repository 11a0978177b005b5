package sim

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/talosop/terraform-provider-talosop/internal/sim/certs"
	"github.com/talosop/terraform-provider-talosop/internal/sim/process"
)

// realEtcd runs an etcd process per control-plane machine on the machine's own
// address, ports 2379 and 2380, with certificates of the configuration's etcd CA.
type realEtcd struct {
	world   *world
	program string // etcd
	folder  string // of etcd's other programs
	dir     string // for data
	nursery *process.Nursery
	peers   *standIns

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
	dir     string
	initial string // --initial-cluster
	state   string // --initial-cluster-state

	mu       sync.Mutex
	host     string
	peer     netip.Addr  // where the others find it
	client   *etcdClient // of host
	listed   string      // the peer URL that the cluster lists, once it is known
	memberID uint64
	proc     *process.Child
}

func (e *realEtcd) newMember(h etcdHost, g *realGroup) (*realMember, error) {
	m := &realMember{
		backend: e, cluster: g, name: h.hostname,
		dir: filepath.Join(e.dir, h.machine+"-etcd-"+uuid.NewString()[:8]),
	}

	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make etcd folder: %w", err)
	}

	if err := m.move(h); err != nil {
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

// move issues certificates for the machine's address when it is another one than before.
func (m *realMember) move(h etcdHost) error {
	host := h.address.String()

	peer, err := m.backend.peers.standIn(h)
	if err != nil {
		return err
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	if m.host == host && m.peer == peer {
		return nil
	}

	ca, err := certs.LoadAuthority(h.ca)
	if err != nil {
		return err
	}

	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	server := certs.Leaf{
		CommonName: m.name, Ips: []net.IP{h.address.AsSlice(), peer.AsSlice(), net.IPv4(127, 0, 0, 1)},
		DNS: []string{"localhost", m.name}, Usage: both,
	}

	// etcd's JSON gateway is a client of its own server, hence both usages.
	err = errors.Join(
		process.WriteFile(m.dir, "ca.crt", h.ca.Crt),
		writePair(m.dir, "server", ca, server),
		writePair(m.dir, "peer", ca, server),
		writePair(m.dir, "admin", ca, certs.Leaf{CommonName: "talos", Usage: both[1:]}),
	)
	if err != nil {
		return err
	}

	client, err := newEtcdClient(m.dir, host)
	if err != nil {
		return err
	}

	if m.client != nil {
		m.client.close()
	}

	m.host, m.peer, m.client = host, peer, client

	return nil
}

// at is the member's address and a client of it.
func (m *realMember) at() (string, *etcdClient) {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.host, m.client
}

func (m *realMember) api() *etcdClient {
	_, client := m.at()

	return client
}

// advertise updates the member list when it shows another peer URL.
func (m *realMember) advertise(ctx context.Context) error {
	url := m.peerURL()

	m.mu.Lock()
	known := m.listed == url
	m.mu.Unlock()

	if known {
		return nil
	}

	members, err := m.members(ctx)
	if err != nil {
		return err
	}

	for _, member := range members {
		if member.GetId() != m.id() || slices.Equal(member.GetPeerUrls(), []string{url}) {
			continue
		}

		if err := m.api().updatePeer(ctx, m.id(), url); err != nil {
			return err
		}
	}

	m.mu.Lock()
	m.listed = url
	m.mu.Unlock()

	return nil
}

func (e *realEtcd) create(h etcdHost) (etcdNode, error) {
	m, err := e.newMember(h, &realGroup{})
	if err != nil {
		return nil, err
	}

	m.initial, m.state = m.name+"="+m.peerURL(), "new"

	return m, nil
}

func (e *realEtcd) join(ctx context.Context, h etcdHost, via etcdNode) (etcdNode, error) {
	other, ok := via.(*realMember)
	if !ok {
		return nil, fmt.Errorf("join etcd through %T", via)
	}

	existing, err := other.members(ctx)
	if err != nil {
		return nil, err
	}

	at, err := e.peers.standIn(h)
	if err != nil {
		return nil, err
	}

	name, peer := h.hostname, "https://"+at.String()+":2380"

	for _, member := range existing {
		if member.GetHostname() == name {
			if err := other.remove(ctx, member.GetId()); err != nil {
				return nil, err
			}
		}
	}

	id, err := other.api().addLearner(ctx, peer)
	if err != nil {
		return nil, err
	}

	all, err := other.members(ctx)
	if err != nil {
		return nil, err
	}

	m, err := e.newMember(h, other.cluster)
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
			m.api().close()
		})
	}

	stopping.Wait()

	return nil
}

func (m *realMember) peerURL() string {
	m.mu.Lock()
	defer m.mu.Unlock()

	return "https://" + m.peer.String() + ":2380"
}

func (m *realMember) run(ctx context.Context) error {
	file := func(name string) string { return filepath.Join(m.dir, name) }
	host, _ := m.at()
	clientURL := "https://" + host + ":2379"

	proc, err := m.backend.nursery.Start("etcd of "+m.name, m.backend.program, file("etcd.log"),
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

	err = proc.AwaitServing(ctx, func(ctx context.Context) error {
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
		proc.Stop()
		m.api().close()
	}
}

func (m *realMember) wipe() {
	m.halt()

	m.cluster.mu.Lock()
	m.cluster.members = slices.DeleteFunc(m.cluster.members, func(other *realMember) bool { return other == m })
	m.cluster.mu.Unlock()

	if err := os.RemoveAll(m.dir); err != nil {
		m.backend.world.logf("remove etcd data of %s: %v", m.name, err)
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
		host, _ := m.at()

		return etcdRefused(host)
	}

	return m.api().readKey(ctx)
}

func (m *realMember) members(ctx context.Context) ([]*machine.EtcdMember, error) {
	return m.api().members(ctx)
}

func (m *realMember) status(ctx context.Context) (*machine.EtcdMemberStatus, error) {
	return m.api().status(ctx)
}

func (m *realMember) remove(ctx context.Context, id uint64) error { return m.api().remove(ctx, id) }

func (m *realMember) promote(ctx context.Context, via etcdNode) error {
	other, ok := via.(*realMember)
	if !ok || other.cluster != m.cluster {
		return errMemberNotFound
	}

	return other.api().promote(ctx, m.id())
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
		if other.GetId() != st.GetMemberId() {
			return other.GetHostname(), m.api().transferLeadership(ctx, other.GetId())
		}
	}

	return "", nil
}

func (m *realMember) snapshot(ctx context.Context, w io.Writer) error {
	return m.api().snapshot(ctx, w)
}
