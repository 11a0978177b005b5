package kubetest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/sim/certs"
)

// authority signs the certificates of servers.
type authority struct{ *certs.Authority }

// newAuthority makes a new, unique authority.
func newAuthority(t testing.TB, name string) authority {
	t.Helper()

	ca, err := certs.SelfSigned(name)
	if err != nil {
		t.Fatal(err)
	}

	return authority{ca}
}

func (a authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Cert.Raw}))
}

func (a authority) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Cert)

	return pool
}

// serve is the TLS configuration of a server at some addresses.
func (a authority) serve(t testing.TB, addresses ...string) *tls.Config {
	t.Helper()

	leaf := certs.Leaf{CommonName: addresses[0], DNS: []string{"localhost"}, Ecdsa: true,
		Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, address := range addresses {
		leaf.Ips = append(leaf.Ips, net.ParseIP(address))
	}

	cert, err := a.Issue(leaf)
	if err != nil {
		t.Fatal(err)
	}

	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}}
}

// authority is the one of a cluster's Kubernetes API.
func (c *Cluster) authority() (authority, error) {
	ca, err := certs.LoadAuthority(c.bundle.Secrets().Certs.K8s)

	return authority{ca}, err
}
