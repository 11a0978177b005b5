package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// Certificates are those that the servers show just now, valid or not, ordered by URL: all servers are asked side by
// side. Who does not answer is left out, and so is a certificate that the cluster's CA did not sign: that one is not of
// the cluster. Nothing is sent.
func (c *Client) Certificates(ctx context.Context) []kubestate.ServerCertificate {
	var (
		mu   sync.Mutex
		seen []kubestate.ServerCertificate
	)

	asking, ctx := panics.WithContext(ctx)

	for _, s := range c.order() {
		if s.certificate == nil {
			continue
		}

		asking.Go(func() error {
			certificate, err := s.certificate(ctx)
			if err != nil {
				return nil // who does not answer is left out
			}

			mu.Lock()
			defer mu.Unlock()

			seen = append(seen, kubestate.ServerCertificate{URL: s.URL, Certificate: certificate})

			return nil
		})
	}

	if asking.Wait() != nil {
		return nil // a panic: nothing is known
	}

	slices.SortFunc(seen, func(a, b kubestate.ServerCertificate) int { return cmp.Compare(a.URL, b.URL) })

	return seen
}

// shown is the certificate that a server shows, signed by one of the roots, whatever the time is.
func shown(ctx context.Context, o Options, base string, roots *x509.CertPool) (kubestate.Certificate, error) {
	server, err := url.Parse(base)
	if err != nil {
		return kubestate.Certificate{}, err
	}

	ctx, cancel := context.WithTimeoutCause(ctx, o.Connect, fmt.Errorf("no certificate within %s", o.Connect))
	defer cancel()

	raw, err := reach(o)(ctx, "tcp", server.Host)
	if err != nil {
		return kubestate.Certificate{}, err
	}

	defer func() { _ = raw.Close() }() // it served its purpose

	var out kubestate.Certificate

	conn := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: server.Hostname(),
		// VerifyConnection verifies all but name and time, and nothing is sent.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			leaf := state.PeerCertificates[0]
			out = kubestate.Certificate{NotBefore: leaf.NotBefore.UTC(), NotAfter: leaf.NotAfter.UTC()}

			return signed(state.PeerCertificates, roots)
		},
	})

	return out, whyEnded(ctx, conn.HandshakeContext(ctx))
}

// signed is an error unless one of the roots signed the chain.
func signed(chain []*x509.Certificate, roots *x509.CertPool) error {
	intermediates := x509.NewCertPool()
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}

	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediates, CurrentTime: chain[0].NotBefore,
	})

	return err
}
