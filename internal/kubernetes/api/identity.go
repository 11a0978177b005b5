package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
)

// identity is the CA of a cluster and a client of it. While the CA is rotated roots has several, and others are the
// clients of the others.
type identity struct {
	roots  *x509.CertPool
	cert   tls.Certificate
	others []identity
}

func (o Options) identity() (identity, error) {
	id := identity{roots: x509.NewCertPool()}
	if !id.roots.AppendCertsFromPEM(o.CA) {
		return identity{}, errors.New("read Kubernetes API credentials: the CA contains no PEM certificate")
	}

	var err error
	if id.cert, err = tls.X509KeyPair(o.Cert, o.Key); err != nil {
		return identity{}, fmt.Errorf("read Kubernetes API credentials: %w", err)
	}

	for _, former := range o.Former {
		other, err := former.identity()
		if err != nil {
			return identity{}, err
		}

		id.others = append(id.others, other)
	}

	return id, nil
}

// transport makes connections with the identity. Each server gets a client certificate of the CA that signed its own:
// that one it accepts, while it may not know the new one yet, or the former one no more.
func (id identity) transport(o Options) *http.Transport {
	if len(id.others) == 0 {
		return newTransport(o, &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: id.roots, Certificates: []tls.Certificate{id.cert}})
	}

	made := newTransport(o, nil)
	made.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}

		raw, err := made.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}

		ctx, cancel := context.WithTimeoutCause(ctx, o.Connect, fmt.Errorf("no TLS handshake within %s", o.Connect))
		defer cancel()

		conn := tls.Client(raw, id.config(host))
		if err := whyEnded(ctx, conn.HandshakeContext(ctx)); err != nil {
			_ = raw.Close() // given up either way

			return nil, err
		}

		return conn, nil
	}

	return made
}

// config is for one connection. VerifyConnection is called before the client certificate is asked for.
func (id identity) config(host string) *tls.Config {
	chosen := &id.cert

	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: id.roots, ServerName: host, NextProtos: []string{"h2", "http/1.1"},
		VerifyConnection: func(state tls.ConnectionState) error {
			for i := range id.others {
				if signed(state.PeerCertificates, id.others[i].roots) == nil {
					chosen = &id.others[i].cert
				}
			}

			return nil
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return chosen, nil },
	}
}
