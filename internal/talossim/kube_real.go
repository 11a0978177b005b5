package talossim

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// realKube is one real kube-apiserver for an etcd cluster. It listens on a hidden
// address; the machines' listeners and the endpoint forward to it, and it reaches etcd
// through a forwarder that picks a member that can serve.
type realKube struct {
	parts  *realParts
	dir    string
	addr   netip.AddrPort
	ca     *authority
	proc   *child
	etcd   *forwarder
	access *rest.Config
	client *kubernetes.Clientset
	nodes  *kubelets

	mu  sync.Mutex
	ips []net.IP // that the serving certificate covers
	dns []string
}

// newRealKube implements backends.kube with a real kube-apiserver.
func (p *realParts) newRealKube(ctx context.Context, b *boot, group any) (kubeBackend, error) {
	g, ok := group.(*realGroup)
	if !ok {
		return nil, fmt.Errorf("kube-apiserver on %T", group)
	}

	addr, err := p.hiddenAddress()
	if err != nil {
		return nil, err
	}

	k := &realKube{
		parts: p, addr: netip.AddrPortFrom(addr, endpointPort),
		dir: filepath.Join(p.dir, "kube-apiserver-"+uuid.NewString()[:8]),
	}

	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make kube-apiserver folder: %w", err)
	}

	if err := k.writePKI(b); err != nil {
		return nil, err
	}

	// 127.0.0.1 is in the certificates of all members, so any of them may be behind it.
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for kube-apiserver's etcd: %w", err)
	}

	k.etcd = forward(l, g.dial)

	if k.proc, err = p.nursery.start("kube-apiserver", p.apiserver, filepath.Join(k.dir, "kube-apiserver.log"), k.args(b)...); err != nil {
		k.etcd.stop()

		return nil, err
	}

	k.nodes = startKubelets(b.joined(), k.client)

	return k, nil
}

// dial connects to a member of the cluster that answers linearizable reads.
func (g *realGroup) dial() (net.Conn, error) {
	g.mu.Lock()
	members := slices.Clone(g.members)
	g.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()

	for _, m := range members {
		if m.healthy(ctx) == nil {
			host, _ := m.at()

			return (&net.Dialer{}).DialContext(ctx, "tcp4", net.JoinHostPort(host, "2379"))
		}
	}

	return nil, errNoLeader
}

// writePKI writes what a kube-apiserver of Talos has, from the configuration.
func (k *realKube) writePKI(b *boot) error {
	cluster := b.config().Cluster()

	ca, err := loadAuthority(cluster.IssuingCA())
	if err != nil {
		return fmt.Errorf("load Kubernetes CA: %w", err)
	}

	aggregator, err := loadAuthority(cluster.AggregatorCA())
	if err != nil {
		return fmt.Errorf("load aggregator CA: %w", err)
	}

	etcd, etcdPair, err := b.etcdAuthority()
	if err != nil {
		return err
	}

	clients := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	trusted := bytes.TrimSpace(cluster.IssuingCA().Crt)

	for _, accepted := range cluster.AcceptedCAs() {
		trusted = slices.Concat(trusted, []byte("\n"), bytes.TrimSpace(accepted.Crt))
	}

	k.ca = ca
	k.cover(b)

	err = errors.Join(
		writeFile(k.dir, "ca.crt", append(trusted, '\n')),
		writeFile(k.dir, "aggregator-ca.crt", cluster.AggregatorCA().Crt),
		writeFile(k.dir, "etcd-ca.crt", etcdPair.Crt),
		writeFile(k.dir, "service-account.key", cluster.ServiceAccount().Key),
		writePair(k.dir, "front-proxy", aggregator, leaf{commonName: "front-proxy-client", usage: clients}),
		writePair(k.dir, "etcd-client", etcd, leaf{commonName: "kube-apiserver", usage: clients}),
		writePair(k.dir, "admin", ca, leaf{commonName: "talossim", organization: []string{"system:masters"}, usage: clients}),
		k.writeServing(),
	)
	if err != nil {
		return err
	}

	file := func(name string) string { return filepath.Join(k.dir, name) }

	k.access = &rest.Config{
		Host: "https://" + k.addr.String(), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: file("ca.crt"), CertFile: file("admin.crt"), KeyFile: file("admin.key")},
	}

	if k.client, err = kubernetes.NewForConfig(k.access); err != nil {
		return fmt.Errorf("make Kubernetes client: %w", err)
	}

	return nil
}

// cover collects the names of the serving certificate: the configured ones and every
// address of the site it may be reached at.
func (k *realKube) cover(b *boot) {
	cluster := b.config().Cluster()
	k.dns = []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"}
	k.ips = []net.IP{k.addr.Addr().AsSlice(), net.IPv4(127, 0, 0, 1)}

	for _, san := range append(cluster.CertSANs(), cluster.Endpoint().Hostname()) {
		if ip := net.ParseIP(san); ip != nil {
			k.ips = append(k.ips, ip)
		} else {
			k.dns = append(k.dns, san)
		}
	}

	for _, m := range b.sim.Machines() {
		k.ips = append(k.ips, m.Address().AsSlice())
	}
}

func (k *realKube) writeServing() error {
	return writePair(k.dir, "apiserver", k.ca, leaf{
		commonName: "kube-apiserver", organization: []string{"kube-master"}, ips: k.ips, dns: k.dns,
		usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// args are Talos's, as far as they mean something without kubelets. Two differ: nothing
// here would remove the taint that TaintNodesByCondition puts on new nodes, and there
// is no address that may be published as an endpoint.
func (k *realKube) args(b *boot) []string {
	cluster := b.config().Cluster()
	file := func(name string) string { return filepath.Join(k.dir, name) }

	return []string{
		"--bind-address=" + k.addr.Addr().String(),
		fmt.Sprintf("--secure-port=%d", k.addr.Port()),
		"--advertise-address=" + b.m.Address().String(),
		"--endpoint-reconciler-type=none",
		"--anonymous-auth=false",
		"--authorization-mode=Node,RBAC",
		"--enable-bootstrap-token-auth=true",
		"--enable-admission-plugins=NodeRestriction",
		"--disable-admission-plugins=TaintNodesByCondition",
		"--client-ca-file=" + file("ca.crt"),
		"--tls-cert-file=" + file("apiserver.crt"),
		"--tls-private-key-file=" + file("apiserver.key"),
		"--requestheader-client-ca-file=" + file("aggregator-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + file("front-proxy.crt"),
		"--proxy-client-key-file=" + file("front-proxy.key"),
		"--service-account-issuer=" + cluster.Endpoint().String(),
		"--service-account-key-file=" + file("service-account.key"),
		"--service-account-signing-key-file=" + file("service-account.key"),
		"--service-cluster-ip-range=" + strings.Join(cluster.Network().ServiceCIDRs(), ","),
		"--etcd-servers=https://" + k.etcd.listener.Addr().String(),
		"--etcd-cafile=" + file("etcd-ca.crt"),
		"--etcd-certfile=" + file("etcd-client.crt"),
		"--etcd-keyfile=" + file("etcd-client.key"),
		"--profiling=false",
		"--v=0",
	}
}

// serve implements kubeBackend. Whatever version is asked for, it is the one process.
func (k *realKube) serve(l net.Listener, _ string) (apiServer, error) {
	return &realServer{realKube: k, stopOwn: k.listen(l)}, nil
}

// realServer is the kube-apiserver as one machine's.
type realServer struct {
	*realKube

	stopOwn func()
}

func (s *realServer) also(l net.Listener) func() { return s.listen(l) }

func (s *realServer) config() *rest.Config { return rest.CopyConfig(s.access) }

func (s *realServer) stop() { s.stopOwn() }

func (k *realKube) listen(l net.Listener) func() {
	if host, _, err := net.SplitHostPort(l.Addr().String()); err == nil {
		k.coverAddress(net.ParseIP(host))
	}

	dialer := &net.Dialer{Timeout: dialTimeout}

	return forward(l, func() (net.Conn, error) {
		return dialer.DialContext(k.parts.sim.ctx, "tcp4", k.addr.String())
	}).stop
}

// coverAddress extends the serving certificate by a machine that came later; the
// server notices the new file.
func (k *realKube) coverAddress(ip net.IP) {
	k.mu.Lock()
	defer k.mu.Unlock()

	if ip == nil || slices.ContainsFunc(k.ips, ip.Equal) {
		return
	}

	k.ips = append(k.ips, ip)

	if err := k.writeServing(); err != nil {
		k.parts.sim.logf("kube-apiserver: renew certificate: %v", err)
	}
}

func (k *realKube) ready(ctx context.Context) error {
	_, err := k.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)

	return err
}

func (k *realKube) close() error {
	k.nodes.stop()
	k.proc.stop()
	k.etcd.stop()

	if err := os.RemoveAll(k.dir); err != nil {
		return fmt.Errorf("remove kube-apiserver folder: %w", err)
	}

	return nil
}
