package kubetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

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

// ExpiredCertificate is a certificate in PEM that expired an hour ago.
func ExpiredCertificate(t testing.TB) []byte {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "expired"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)}

	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}

	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
