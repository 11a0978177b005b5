package etcd

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
	"github.com/talosop/terraform-provider-talosop/internal/sim/world"
)

// Real runs an etcd process per control-plane machine on the machine's own
// address, ports 2379, 2380 and (see Host.SplitHTTP) 2383, with certificates of the configuration's etcd CA.
type Real struct {
	World   *world.World
	Program string // etcd
	Folder  string // of etcd's other programs
	Dir     string // for data
	Nursery *process.Nursery
	Peers   *StandIns

	mu      sync.Mutex
	members []*realMember
}

// The ports of clients.
const (
	grpcPort = "2379"
	httpPort = "2383"
)

// RealGroup is the identity of one real etcd cluster.
type RealGroup struct {
	mu      sync.Mutex
	members []*realMember
}

// realMember is one data directory, and its process while it runs.
type realMember struct {
	backend *Real
	cluster *RealGroup
	name    string
	dir     string
	initial string // --initial-cluster
	state   string // --initial-cluster-state

	mu       sync.Mutex
	host     string
	peer     netip.Addr // where the others find it
	client   *client    // of host
	split    bool       // see Host.SplitHTTP
	listed   string     // the peer URL that the cluster lists, once it is known
	memberID uint64
	proc     *process.Child
}

func (e *Real) newMember(h Host, g *RealGroup) (*realMember, error) {
	m := &realMember{
		backend: e, cluster: g, name: h.Hostname,
		dir: filepath.Join(e.Dir, h.Machine+"-etcd-"+uuid.NewString()[:8]),
	}

	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make etcd folder: %w", err)
	}

	if err := m.Move(h); err != nil {
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

// Move issues certificates for the machine's address when it is another one than before.
func (m *realMember) Move(h Host) error {
	host := h.Address.String()

	peer, err := m.backend.Peers.standIn(h)
	if err != nil {
		return err
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	if m.host == host && m.peer == peer && m.split == h.SplitHTTP {
		return nil
	}

	ca, err := certs.LoadAuthority(h.CA)
	if err != nil {
		return err
	}

	both := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	server := certs.Leaf{
		CommonName: m.name, Ips: []net.IP{h.Address.AsSlice(), peer.AsSlice(), net.IPv4(127, 0, 0, 1)},
		DNS: []string{"localhost", m.name}, Usage: both,
	}

	// etcd's JSON gateway is a client of the server itself, so the certificate has both usages.
	err = errors.Join(
		process.WriteFile(m.dir, "ca.crt", h.CA.Crt),
		certs.WritePair(m.dir, "server", ca, server),
		certs.WritePair(m.dir, "peer", ca, server),
		certs.WritePair(m.dir, "admin", ca, certs.Leaf{CommonName: "talos", Usage: both[1:]}),
	)
	if err != nil {
		return err
	}

	port := grpcPort
	if h.SplitHTTP {
		port = httpPort
	}

	client, err := newClient(m.dir, host, port)
	if err != nil {
		return err
	}

	if m.client != nil {
		m.client.close()
	}

	m.host, m.peer, m.client, m.split = host, peer, client, h.SplitHTTP

	return nil
}

// at is the member's address and a client of it.
func (m *realMember) at() (string, *client) {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.host, m.client
}

func (m *realMember) api() *client {
	_, client := m.at()

	return client
}

// Advertise updates the member list when it shows another peer URL.
func (m *realMember) Advertise(ctx context.Context) error {
	url := m.peerURL()

	m.mu.Lock()
	known := m.listed == url
	m.mu.Unlock()

	if known {
		return nil
	}

	members, err := m.Members(ctx)
	if err != nil {
		return err
	}

	for _, member := range members {
		if member.GetId() != m.ID() || slices.Equal(member.GetPeerUrls(), []string{url}) {
			continue
		}

		if err := m.api().updatePeer(ctx, m.ID(), url); err != nil {
			return err
		}
	}

	m.mu.Lock()
	m.listed = url
	m.mu.Unlock()

	return nil
}

// Create implements [Backend].
func (e *Real) Create(h Host) (Node, error) {
	m, err := e.newMember(h, &RealGroup{})
	if err != nil {
		return nil, err
	}

	m.initial, m.state = m.name+"="+m.peerURL(), "new"

	return m, nil
}

// Join implements [Backend].
func (e *Real) Join(ctx context.Context, h Host, via Node) (Node, error) {
	other, ok := via.(*realMember)
	if !ok {
		return nil, fmt.Errorf("join etcd through %T", via)
	}

	existing, err := other.Members(ctx)
	if err != nil {
		return nil, err
	}

	at, err := e.Peers.standIn(h)
	if err != nil {
		return nil, err
	}

	name, peer := h.Hostname, "https://"+at.String()+":2380"

	for _, member := range existing {
		if member.GetHostname() == name {
			if err := other.Remove(ctx, member.GetId()); err != nil {
				return nil, err
			}
		}
	}

	id, err := other.api().addLearner(ctx, peer)
	if err != nil {
		return nil, err
	}

	all, err := other.Members(ctx)
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

// Close implements [Backend].
func (e *Real) Close() error {
	e.mu.Lock()
	members := slices.Clone(e.members)
	e.mu.Unlock()

	var stopping sync.WaitGroup

	for _, m := range members {
		stopping.Go(func() {
			m.Halt()
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

func (m *realMember) Run(ctx context.Context) error {
	file := func(name string) string { return filepath.Join(m.dir, name) }

	m.mu.Lock()
	host, split := m.host, m.split
	m.mu.Unlock()

	clientURL := "https://" + net.JoinHostPort(host, grpcPort)

	args := []string{
		"--name=" + m.name, "--data-dir=" + file("data"),
		"--listen-client-urls=" + clientURL, "--advertise-client-urls=" + clientURL,
		"--listen-peer-urls=" + m.peerURL(), "--initial-advertise-peer-urls=" + m.peerURL(),
		"--initial-cluster=" + m.initial, "--initial-cluster-state=" + m.state,
		"--client-cert-auth=true", "--cert-file=" + file("server.crt"), "--key-file=" + file("server.key"),
		"--trusted-ca-file=" + file("ca.crt"),
		"--peer-client-cert-auth=true", "--peer-cert-file=" + file("peer.crt"), "--peer-key-file=" + file("peer.key"),
		"--peer-trusted-ca-file=" + file("ca.crt"),
		"--logger=zap", "--log-level=warn", "--unsafe-no-fsync",
	}
	if split {
		args = append(args, "--listen-client-http-urls=https://"+net.JoinHostPort(host, httpPort))
	}

	proc, err := m.backend.Nursery.Start("etcd of "+m.name, m.backend.Program, file("etcd.log"), args...)
	if err != nil {
		return err
	}

	m.mu.Lock()
	m.proc = proc
	m.mu.Unlock()

	err = proc.AwaitServing(ctx, func(ctx context.Context) error {
		st, err := m.Status(ctx)
		if err == nil {
			m.mu.Lock()
			m.memberID = st.GetMemberId()
			m.mu.Unlock()
		}

		return err
	})
	if err != nil {
		m.Halt()
	}

	return err
}

func (m *realMember) Halt() {
	m.mu.Lock()
	proc := m.proc
	m.proc = nil
	m.mu.Unlock()

	if proc != nil {
		proc.Stop()
		m.api().close()
	}
}

func (m *realMember) Wipe() {
	m.Halt()

	m.cluster.mu.Lock()
	m.cluster.members = slices.DeleteFunc(m.cluster.members, func(other *realMember) bool { return other == m })
	m.cluster.mu.Unlock()

	if err := os.RemoveAll(m.dir); err != nil {
		m.backend.World.Logf("remove etcd data of %s: %v", m.name, err)
	}
}

func (m *realMember) ID() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.memberID
}

func (m *realMember) running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.proc != nil
}

func (m *realMember) Group() any { return m.cluster }

func (m *realMember) Healthy(ctx context.Context) error {
	if !m.running() {
		host, _ := m.at()

		return Refused(host)
	}

	return m.api().readKey(ctx)
}

func (m *realMember) Members(ctx context.Context) ([]*machine.EtcdMember, error) {
	return m.api().members(ctx)
}

func (m *realMember) Status(ctx context.Context) (*machine.EtcdMemberStatus, error) {
	return m.api().status(ctx)
}

// Downgrade implements [Node].
func (m *realMember) Downgrade(ctx context.Context, action, version string) (string, error) {
	return m.api().downgrade(ctx, action, version)
}

func (m *realMember) Remove(ctx context.Context, id uint64) error { return m.api().remove(ctx, id) }

func (m *realMember) Promote(ctx context.Context, via Node) error {
	other, ok := via.(*realMember)
	if !ok || other.cluster != m.cluster {
		return ErrMemberNotFound
	}

	return other.api().promote(ctx, m.ID())
}

func (m *realMember) MoveLeader(ctx context.Context) (string, error) {
	st, err := m.Status(ctx)
	if err != nil {
		return "", err
	}

	if st.GetLeader() != st.GetMemberId() {
		return "", nil
	}

	members, err := m.Members(ctx)
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

func (m *realMember) Snapshot(ctx context.Context, w io.Writer) error {
	return m.api().snapshot(ctx, w)
}

// Dial connects to a member of the cluster that answers linearizable reads.
func (g *RealGroup) Dial() (net.Conn, error) {
	g.mu.Lock()
	members := slices.Clone(g.members)
	g.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), process.DialTimeout)
	defer cancel()

	for _, m := range members {
		if m.Healthy(ctx) == nil {
			host, _ := m.at()

			return (&net.Dialer{}).DialContext(ctx, "tcp4", net.JoinHostPort(host, grpcPort))
		}
	}

	return nil, errNoLeader
}
