package pki

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	talosx509 "github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
)

// Authority describes one certificate authority of a cluster; nothing in it is secret.
type Authority struct {
	// Name is "talos", "kubernetes", "etcd" or "aggregator".
	Name string
	// Fingerprint is the SHA-256 of the certificate (DER), in lower-case hex.
	Fingerprint string
	// NotBefore is since when the authority is valid, in UTC.
	NotBefore time.Time
	// NotAfter is when the authority, and with it every certificate it signed, stops being valid, in UTC.
	NotAfter time.Time
}

// Authorities lists the certificate authorities of the cluster, always the same four in the same order:
// talos, kubernetes, etcd, aggregator.
func (b *Bundle) Authorities() []Authority {
	var authorities []Authority

	for _, part := range authorityParts(b.secrets.Certs) {
		certificate, err := part.pair.GetCert()
		if err != nil {
			// Every constructor has parsed it already.
			panic("pki: bundle with an unchecked certificate: " + err.Error())
		}

		digest := sha256.Sum256(certificate.Raw)
		authorities = append(authorities, Authority{
			Name:        part.name,
			Fingerprint: hex.EncodeToString(digest[:]),
			NotBefore:   certificate.NotBefore.UTC(),
			NotAfter:    certificate.NotAfter.UTC(),
		})
	}

	return authorities
}

// authorityPart connects the name an authority has for users with the name it has in the bundle's file.
type authorityPart struct {
	name, part string
	pair       *talosx509.PEMEncodedCertificateAndKey
}

func authorityParts(certs *secrets.Certs) []authorityPart {
	return []authorityPart{
		{"talos", "os", certs.OS},
		{"kubernetes", "k8s", certs.K8s},
		{"etcd", "etcd", certs.Etcd},
		{"aggregator", "k8saggregator", certs.K8sAggregator},
	}
}
