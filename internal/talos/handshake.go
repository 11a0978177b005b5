package talos

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/kubestate"
)

// peer is what the handshake showed about the machine at the other end.
type peer struct {
	access step.Access
	// fingerprint is the base64 SHA-256 of the certificate's public key, as
	// Talos prints it on the console in maintenance mode.
	fingerprint string
	// fqdn is the machine's host name and domain, after which Talos names its certificate. Only members have it; a
	// machine of another cluster cannot prove its name.
	fqdn string
	// certificate is that of a member.
	certificate kubestate.Certificate
}

// nodeName is the name of the machine's Kubernetes node; empty when the certificate names no host. With
// kubelet.registerWithFQDN the domain stays.
func (p peer) nodeName(withDomain bool) string { return kubenames.NodeName(p.fqdn, withDomain) }

// gatekeeper judges one server certificate. It replaces the verification of crypto/tls, because two kinds of
// servers are accepted, and the handshake has to distinguish them.
type gatekeeper struct {
	host     string
	identity identity
	// fingerprint is the one that a machine in maintenance mode has to have; empty accepts any.
	fingerprint string
	now         func() time.Time
	peer        peer
	// chain is the certificate chain of a member.
	chain []*x509.Certificate
}

// handshake does TLS over an established connection. Its errors are ErrForeign for a foreign peer, and
// ErrUnreachable for everything transient.
func (g *gatekeeper) handshake(ctx context.Context, raw net.Conn) (*tls.Conn, error) {
	conn := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"h2"},
		ServerName: strings.TrimSuffix(g.host, "."),
		// VerifyConnection does all of the verification.
		InsecureSkipVerify: true,
		VerifyConnection:   g.verify,
		// Called after verify, and only when the server asks.
		GetClientCertificate: g.clientCertificate,
	})

	if err := conn.HandshakeContext(ctx); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}

		return nil, handshakeError(err)
	}

	return conn, nil
}

func handshakeError(err error) error {
	if Classify(err) != nil {
		return callError(err)
	}

	var header tls.RecordHeaderError
	if errors.As(err, &header) {
		return foreignError("the server does not use TLS")
	}

	if alert, ok := alertOf(err); ok {
		return alert.verdict()
	}

	// A restarting API ends connections half-way (EOF).
	return fmt.Errorf("%w: TLS handshake failed: %w", ErrUnreachable, err)
}

func (g *gatekeeper) verify(state tls.ConnectionState) error {
	leaf := state.PeerCertificates[0]
	g.peer.fingerprint = fingerprint(leaf)

	if g.identity.roots != nil {
		switch err := g.signedByCA(state.PeerCertificates); {
		case err == nil:
			g.chain = state.PeerCertificates

			return g.admitMember(leaf)
		case isExpired(err):
			return fmt.Errorf("%w: %w", ErrUnreachable, certificateError{validity(leaf), g.now()})
		case !isUnknownAuthority(err):
			return fmt.Errorf("%w: the certificate of the machine is not valid: %w", ErrUnreachable, err)
		}
	}

	if leaf.Subject.CommonName == constants.MaintenanceServiceCommonName {
		return g.admitMaintenance()
	}

	// That authority is called so in every cluster (machinery 1.14, config/generate/secrets/ca.go, NewTalosCA).
	if slices.Contains(leaf.Issuer.Organization, "talos") {
		g.peer.access, g.peer.fqdn = step.Foreign, leaf.Subject.CommonName
	}

	if g.identity.roots == nil {
		return foreignError("the machine is already configured, and no credentials for its cluster were given")
	}

	return foreignError("its certificate is not signed by the Talos CA of this cluster, so the machine belongs to " +
		"another cluster")
}

// signedByCA verifies the chain without the name. This distinguishes a foreign machine from a machine of this
// cluster whose certificate lacks the address.
func (g *gatekeeper) signedByCA(chain []*x509.Certificate) error {
	return signedBy(g.identity.roots, chain, g.now())
}

func signedBy(roots *x509.CertPool, chain []*x509.Certificate, now time.Time) error {
	intermediates := x509.NewCertPool()
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}

	opts := x509.VerifyOptions{Roots: roots, Intermediates: intermediates, CurrentTime: now}

	_, err := chain[0].Verify(opts)

	// A wrong clock is no reason to call a machine foreign. Expiry is checked
	// before the signature, so a second check at another time asks only for that.
	if isExpired(err) {
		opts.CurrentTime = chain[0].NotBefore
		if _, signature := chain[0].Verify(opts); isUnknownAuthority(signature) {
			return signature
		}
	}

	return err
}

// isExpired is true for a certificate that is not valid any more, or not yet.
func isExpired(err error) bool {
	var invalid x509.CertificateInvalidError

	return errors.As(err, &invalid) && invalid.Reason == x509.Expired
}

func validity(cert *x509.Certificate) kubestate.Certificate {
	return kubestate.Certificate{NotBefore: cert.NotBefore.UTC(), NotAfter: cert.NotAfter.UTC()}
}

// certificateError is that a machine of the cluster shows a certificate that is not valid now.
type certificateError struct {
	certificate kubestate.Certificate
	now         time.Time
}

// Error says what renews the certificate: Talos does so by itself (Talos 1.13,
// internal/app/machined/pkg/controllers/secrets/api.go).
func (e certificateError) Error() string {
	here := e.now.UTC().Format(time.RFC3339)

	if e.now.Before(e.certificate.NotBefore) {
		return fmt.Sprintf("its certificate is not valid before %s, and the time here is %s: compare the clocks of the "+
			"machine and this computer", e.certificate.NotBefore.Format(time.RFC3339), here)
	}

	return fmt.Sprintf("its certificate expired at %s, and the time here is %s: Talos renews it every 12 hours and at "+
		"every boot, on workers with the help of a control plane. Compare the clocks of the machine and this computer; "+
		"if they are right, check that the control planes run, or reboot the machine",
		e.certificate.NotAfter.Format(time.RFC3339), here)
}

func isUnknownAuthority(err error) bool {
	var unknown x509.UnknownAuthorityError

	return errors.As(err, &unknown)
}

func (g *gatekeeper) admitMember(leaf *x509.Certificate) error {
	if err := leaf.VerifyHostname(g.host); err != nil {
		// Talos renews the certificate when the machine learns another address or machine.certSANs changes, so
		// this may be transient.
		return fmt.Errorf("%w: its certificate is not valid for %s (add the address to machine.certSANs): %w", ErrUnreachable,
			g.host, err)
	}

	g.peer.access = step.Member
	g.peer.fqdn, g.peer.certificate = leaf.Subject.CommonName, validity(leaf)

	return nil
}

func (g *gatekeeper) admitMaintenance() error {
	if g.fingerprint != "" && g.fingerprint != g.peer.fingerprint {
		return foreignError("it waits in maintenance mode with the certificate fingerprint %s, expected is %s; "+
			"the certificate is regenerated at every boot, so read it from the machine's console again",
			g.peer.fingerprint, g.fingerprint)
	}

	g.peer.access = step.Maintenance

	return nil
}

// clientCertificate answers a server that asks for a certificate. Maintenance mode
// never asks (NoClientCert, Talos 1.13), so one that does only pretends to be it.
func (g *gatekeeper) clientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if g.peer.access != step.Member {
		return nil, foreignError("the server presents a maintenance mode certificate but requests a client certificate")
	}

	return g.identity.certFor(g.chain, g.now()), nil
}

// fingerprint is the base64 SHA-256 of the subject's public key info.
func fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)

	return base64.StdEncoding.EncodeToString(sum[:])
}

// certFor is the client certificate for a server that shows a chain of certificates.
func (i identity) certFor(chain []*x509.Certificate, now time.Time) *tls.Certificate {
	for _, other := range i.former {
		if signedBy(other.roots, chain, now) == nil {
			return other.cert
		}
	}

	return i.cert
}
