package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/talosop/terraform-provider-talosop/internal/sim/certs"
	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/objects"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// standIn is the Kubernetes API without a kube-apiserver: objects in memory behind
// HTTPS, with certificates of the configuration's Kubernetes CA. It knows a fixed set
// of kinds, no admission, no controllers but the kubelets of the machines, and one rule: system:masters may do all.
type standIn struct {
	site    Site
	Store   *objects.Store
	healthy func() bool // of etcd
	cancel  context.CancelFunc
	work    sync.WaitGroup
}

// StandInServer is the stand-in as the kube-apiserver of one machine.
type StandInServer struct {
	*standIn

	version string
	host    string // of its machine
	tls     *tls.Config
	clients *x509.CertPool
	// verified are the certificates of clients, by their content, whose signature was verified.
	verified sync.Map
	stopOwn  func()
	stopped  atomic.Bool
}

// NewStandIn implements backends.kube.
func NewStandIn(site Site, group any) (Backend, error) {
	s := &standIn{site: site, Store: objects.NewStore(), healthy: func() bool { return true }}

	if c, ok := group.(*etcd.ModelCluster); ok {
		s.Store = c.Store
		s.healthy = c.Led
	}

	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		if _, err := s.Store.Create(objects.Kinds[1], &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": name}, "status": map[string]any{"phase": "Active"},
		}}); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("create namespace %s: %w", name, err)
		}
	}

	ctx, cancel := context.WithCancel(site.Ctx)
	s.cancel = cancel
	s.work.Go(func() { s.runKubelets(ctx) })

	return s, nil
}

// certificates issues server certificates for the address of a connection, in addition to the names that are
// configured for all machines and those of the one at that address.
func certificates(site Site, ca *certs.Authority, sans []string) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	issued := timing.NewOnceMap[string, *tls.Certificate]()

	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		host, _, err := net.SplitHostPort(hello.Conn.LocalAddr().String())
		if err != nil {
			return nil, fmt.Errorf("find local address: %w", err)
		}

		return issued.Get(host, func() (*tls.Certificate, error) {
			names, ips := servingNames(slices.Concat(sans, site.Machines.SansAt(host)))

			cert, err := ca.Issue(certs.Leaf{
				CommonName: "kube-apiserver", Organization: []string{"kube-master"}, DNS: names,
				Ips: append(ips, net.ParseIP(host)), Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
				Ecdsa: true, Validity: 365 * 24 * time.Hour,
			})

			return &cert, err
		})
	}
}

// servingNames are the names of every API server, with additional ones.
func servingNames(sans []string) (names []string, ips []net.IP) {
	names = []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"}
	ips = []net.IP{net.IPv4(127, 0, 0, 1)}

	for _, san := range sans {
		if ip := net.ParseIP(san); ip != nil {
			ips = append(ips, ip)
		} else {
			names = append(names, san)
		}
	}

	return names, ips
}

type logWriter struct {
	logf func(format string, args ...any)
}

// Write implements io.Writer.
func (w logWriter) Write(p []byte) (int, error) {
	w.logf("kubernetes: %s", strings.TrimSpace(string(p)))

	return len(p), nil
}

func (s *standIn) Close() error {
	s.cancel()
	s.work.Wait()

	return nil
}

// authenticate verifies the client certificate against the authorities of Kubernetes that the machine accepts.
func (s *StandInServer) authenticate(r *http.Request) (user string, groups []string, ok bool) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return "", nil, false
	}

	cert := r.TLS.PeerCertificates[0]

	// Verifying a signature costs more than most requests, so it happens once for each certificate.
	if _, known := s.verified.Load(string(cert.Raw)); !known || time.Now().After(cert.NotAfter) {
		if _, err := cert.Verify(x509.VerifyOptions{
			Roots: s.clients, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}); err != nil {
			return "", nil, false
		}

		s.verified.Store(string(cert.Raw), true)
	}

	return cert.Subject.CommonName, cert.Subject.Organization, true
}
