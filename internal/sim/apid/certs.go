package apid

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/sim/certs"
)

// maintenanceTLS is the configuration of a machine without an owner: a certificate of an authority made for this
// boot, and no request for the client's.
func (s *Server) maintenanceTLS() (*tls.Config, error) {
	ca, err := certs.SelfSigned("talos")
	if err != nil {
		return nil, err
	}

	cert, err := ca.Issue(certs.Leaf{
		CommonName: constants.MaintenanceServiceCommonName,
		Ips:        []net.IP{s.Address().AsSlice(), net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		DNS:        hostnames(s.Hostname()),
		Usage:      []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return nil, err
	}

	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}}, nil
}

func hostnames(name string) []string {
	if name == "" {
		return nil
	}

	return []string{name}
}

// configuredTLS is the configuration of a machine that belongs to a cluster. Its certificate is valid from now on for a
// time, that of Talos's when zero.
func (s *Server) configuredTLS(issuer *certs.Authority, validity time.Duration) (*tls.Config, error) {
	cfg := s.Config()
	security := cfg.Machine().Security()

	ips := []net.IP{s.Address().AsSlice(), net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	names := hostnames(s.Hostname())

	for _, san := range security.CertSANs() {
		if ip := net.ParseIP(san); ip != nil {
			ips = append(ips, ip)
		} else {
			names = append(names, san)
		}
	}

	cert, err := issuer.Issue(certs.Leaf{
		CommonName: s.Hostname(), Ips: ips, DNS: names, Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		Validity: validity,
	})
	if err != nil {
		return nil, err
	}

	clients := x509.NewCertPool()

	for _, ca := range issuer.Accepted { // of a worker these decide, and not its configuration
		clients.AppendCertsFromPEM(ca)
	}

	if ca := security.IssuingCA(); ca != nil && s.ControlPlane() {
		clients.AppendCertsFromPEM(ca.Crt)
	}

	if s.ControlPlane() {
		for _, ca := range security.AcceptedCAs() {
			clients.AppendCertsFromPEM(ca.Crt)
		}
	}

	return &tls.Config{
		MinVersion:            tls.VersionTLS13,
		Certificates:          []tls.Certificate{cert},
		ClientAuth:            tls.RequireAndVerifyClientCert,
		ClientCAs:             clients,
		VerifyPeerCertificate: clientAuthOnly,
	}, nil
}

// clientAuthOnly refuses client certificates whose extended key usage is not exactly
// client authentication (Talos 1.13).
func clientAuthOnly(_ [][]byte, chains [][]*x509.Certificate) error {
	if len(chains) == 0 {
		return errors.New("no verified chains")
	}

	for _, cert := range chains[0] {
		if !cert.IsCA && !slices.Equal(cert.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) {
			return fmt.Errorf("certificate %q is missing the client auth extended key usage", cert.Subject)
		}
	}

	return nil
}

// issuer is who signs the machine's API certificate: itself on a control-plane machine,
// trustd of one on a worker. Nil while there is none.
func (s *Server) issuer() *certs.Authority {
	if s.ControlPlane() {
		ca, err := certs.LoadAuthority(s.OSAuthority())
		if err != nil {
			return nil
		}

		return ca
	}

	s.World.Lock()
	defer s.World.Unlock()

	return s.host.Trust()
}
