package talos

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"time"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
)

// testCA signs like Talos does: Ed25519, organization talos.
type testCA struct {
	cert *x509.Certificate
	key  ed25519.PrivateKey
}

func newTestCA(t *testing.T) testCA {
	t.Helper()

	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"talos"}},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}

	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		t.Fatal(err)
	}

	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}

	return testCA{cert, key}
}

// issue signs a certificate for 127.0.0.1 and changes it first, if asked to.
func (a testCA) issue(t *testing.T, commonName string, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()

	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: commonName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(template)
	}

	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, public, a.key)
	if err != nil {
		t.Fatal(err)
	}

	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}

	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func (a testCA) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)

	return pool
}

func (a testCA) credentials(t *testing.T) Credentials {
	t.Helper()

	return a.credentialsOf(t, a.issue(t, "", nil))
}

func (a testCA) credentialsOf(t *testing.T, cert tls.Certificate) Credentials {
	t.Helper()

	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}

	return Credentials{
		CA:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}),
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}
}

// member is the TLS side of a configured machine of the cluster.
func (a testCA) member(t *testing.T, change func(*x509.Certificate)) *tls.Config {
	t.Helper()

	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{a.issue(t, "cp-1.example.org", change)},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.pool(), NextProtos: []string{"h2"},
	}
}

// maintenance is the TLS side of a machine that waits for a configuration.
func maintenance(t *testing.T, change func(*x509.Certificate)) *tls.Config {
	t.Helper()

	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
		Certificates: []tls.Certificate{newTestCA(t).issue(t, constants.MaintenanceServiceCommonName, change)},
	}
}

// gate serves gRPC without any service, and counts connections.
type gate struct {
	net.Listener
	server   *grpc.Server
	accepted atomic.Int32
}

func (g *gate) Accept() (net.Conn, error) {
	conn, err := g.Listener.Accept()
	if err == nil {
		g.accepted.Add(1)
	}

	return conn, err
}

func (g *gate) port() int { return g.Addr().(*net.TCPAddr).Port }

// lasting is a listener whose port stays taken for the next server when its server stops. Another process could
// take a released port.
type lasting struct{ *net.TCPListener }

func newLasting(t *testing.T) lasting {
	t.Helper()

	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { l.Close() })

	return lasting{l}
}

// Close implements net.Listener: nothing is accepted any more.
func (l lasting) Close() error { return l.SetDeadline(time.Now()) }

// again is the listener for another server, which closes it.
func (l lasting) again(t *testing.T) net.Listener {
	t.Helper()

	if err := l.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}

	return l.TCPListener
}

func serveTLS(t *testing.T, config *tls.Config, register ...func(*grpc.Server)) *gate {
	t.Helper()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	return serveOn(t, l, config, register...)
}

func serveOn(t *testing.T, l net.Listener, config *tls.Config, register ...func(*grpc.Server)) *gate {
	t.Helper()

	g := &gate{Listener: tls.NewListener(l, config), server: grpc.NewServer(grpc.Creds(insecure.NewCredentials()))}
	for _, r := range register {
		r(g.server)
	}

	done := make(chan struct{})

	go func() {
		defer close(done)

		_ = g.server.Serve(g)
	}()
	t.Cleanup(func() {
		g.server.Stop()
		<-done
	})

	return g
}

// served is a machine of a separate cluster that serves the registered services, for states that no simulated
// machine has.
func served(t *testing.T, register ...func(*grpc.Server)) *Machine {
	t.Helper()

	ca := newTestCA(t)
	g := serveTLS(t, ca.member(t, nil), register...)

	f, err := NewFleet(testOptions(g.port(), ca.credentials(t)))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(f.Close)

	return f.Machine(cluster.Machine{Name: "cp-1", Wanted: cluster.Wanted{Address: "127.0.0.1"}})
}

// machineOf serves the machine API.
func machineOf(t *testing.T, api machineapi.MachineServiceServer) *Machine {
	t.Helper()

	return served(t, func(s *grpc.Server) { machineapi.RegisterMachineServiceServer(s, api) })
}

func testOptions(port int, credentials Credentials) Options {
	return Options{
		Credentials: credentials, Port: port,
		Timeouts: Timeouts{Connect: time.Minute, Silence: time.Minute, Call: time.Minute, Observe: 2 * time.Minute,
			Poll: 10 * time.Millisecond},
	}.withDefaults()
}

func connect(t *testing.T, o Options, fingerprint string) (*session, peer, error) {
	t.Helper()

	id, err := o.Credentials.parse()
	if err != nil {
		t.Fatal(err)
	}

	s, p, err := o.open(t.Context(), "127.0.0.1", id, fingerprint)
	if s != nil {
		t.Cleanup(s.close)
	}

	return s, p, err
}
