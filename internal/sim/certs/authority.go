package certs

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	talosx509 "github.com/siderolabs/crypto/x509"
)

// Authority is a certificate authority with its key.
type Authority struct {
	Cert *x509.Certificate
	// Accepted are the certificates, in PEM, of those whose clients are taken where it is a trustd that signs.
	Accepted [][]byte
	key      crypto.Signer
}

// LoadAuthority parses a CA of a machine configuration.
func LoadAuthority(pair *talosx509.PEMEncodedCertificateAndKey) (*Authority, error) {
	if pair == nil || len(pair.Crt) == 0 || len(pair.Key) == 0 {
		return nil, errors.New("certificate authority has no key")
	}

	cert, err := pair.GetCert()
	if err != nil {
		return nil, fmt.Errorf("parse CA certificate: %w", err)
	}

	key, err := pair.GetKey()
	if err != nil {
		return nil, fmt.Errorf("parse CA key: %w", err)
	}

	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("CA key of type %T cannot sign", key)
	}

	return &Authority{Cert: cert, key: signer}, nil
}

// SelfSigned makes an authority that lives only in memory.
func SelfSigned(organization string) (*Authority, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate CA key: %w", err)
	}

	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{Organization: []string{organization}},
		NotBefore:             now.Add(-time.Minute),
		NotAfter:              now.Add(CertValidity),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}

	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, fmt.Errorf("sign CA certificate: %w", err)
	}

	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse CA certificate: %w", err)
	}

	return &Authority{Cert: cert, key: private}, nil
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return big.NewInt(time.Now().UnixNano())
	}

	return n
}

// Leaf describes a certificate to issue.
type Leaf struct {
	CommonName   string
	Organization []string
	Ips          []net.IP
	DNS          []string
	Usage        []x509.ExtKeyUsage
	Validity     time.Duration
	Ecdsa        bool // for peers that do not know Ed25519
}

// Issue signs a certificate with a new key.
func (a *Authority) Issue(l Leaf) (tls.Certificate, error) {
	key, err := newKey(l.Ecdsa)
	if err != nil {
		return tls.Certificate{}, err
	}

	l.Validity = cmp.Or(l.Validity, CertValidity)

	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: l.CommonName, Organization: l.Organization},
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(l.Validity),
		IPAddresses:  l.Ips,
		DNSNames:     l.DNS,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  l.Usage,
	}

	der, err := x509.CreateCertificate(rand.Reader, template, a.Cert, key.Public(), a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("sign certificate %q: %w", l.CommonName, err)
	}

	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

func newKey(useECDSA bool) (crypto.Signer, error) {
	if useECDSA {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("generate key: %w", err)
		}

		return key, nil
	}

	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}

	return key, nil
}

// PemPair encodes a certificate and its key.
func PemPair(c tls.Certificate) (cert, key []byte, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return nil, nil, fmt.Errorf("encode key: %w", err)
	}

	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// CertValidity of a server certificate, as Talos issues them.
const CertValidity = 24 * time.Hour
