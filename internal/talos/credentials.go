package talos

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// Credentials are the two sides of mutual TLS in one cluster, each PEM encoded: the
// CA that signs the machines' certificates, and a client certificate of the same CA
// with its key. They print as a placeholder.
//
// While the CA of a cluster is rotated CA holds several, and Former are the credentials of the others: a machine is
// shown a certificate of the CA that signed its own, which it accepts in any case.
type Credentials struct {
	CA, Cert, Key []byte
	Former        []Credentials
}

// String hides the credentials.
func (Credentials) String() string { return "(Talos API credentials)" }

// GoString hides the credentials from %#v.
func (c Credentials) GoString() string { return c.String() }

// Format hides the credentials from every verb.
func (c Credentials) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, c.String()) }

func (c Credentials) empty() bool { return len(c.CA) == 0 && len(c.Cert) == 0 && len(c.Key) == 0 }

// identity is a parsed form of Credentials. Without credentials roots is nil and
// every configured machine is foreign.
type identity struct {
	roots *x509.CertPool
	cert  *tls.Certificate
	// former are those of the other CAs in roots.
	former []identity
}

func (c Credentials) parse() (identity, error) {
	if c.empty() {
		return identity{}, nil
	}

	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.CA) {
		return identity{}, errors.New("read Talos API credentials: the CA contains no PEM certificate")
	}

	cert, err := tls.X509KeyPair(c.Cert, c.Key)
	if err != nil {
		return identity{}, fmt.Errorf("read Talos API credentials: %w", err)
	}

	id := identity{roots: roots, cert: &cert}

	for _, former := range c.Former {
		other, err := former.parse()
		if err != nil {
			return identity{}, err
		}

		id.former = append(id.former, other)
	}

	return id, nil
}
