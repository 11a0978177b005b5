package sim

import (
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

// authority is a certificate authority with its key.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// loadAuthority parses a CA of a machine configuration.
func loadAuthority(pair *talosx509.PEMEncodedCertificateAndKey) (*authority, error) {
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

	return &authority{cert: cert, key: signer}, nil
}

// selfSigned makes an authority that lives only in memory.
func selfSigned(organization string) (*authority, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate CA key: %w", err)
	}

	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{Organization: []string{organization}},
		NotBefore:             now.Add(-time.Minute),
		NotAfter:              now.Add(certValidity),
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

	return &authority{cert: cert, key: private}, nil
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return big.NewInt(time.Now().UnixNano())
	}

	return n
}

// leaf describes a certificate to issue.
type leaf struct {
	commonName   string
	organization []string
	ips          []net.IP
	dns          []string
	usage        []x509.ExtKeyUsage
	validity     time.Duration
	ecdsa        bool // for peers that do not know Ed25519
}

// issue signs a certificate with a new key.
func (a *authority) issue(l leaf) (tls.Certificate, error) {
	key, err := newKey(l.ecdsa)
	if err != nil {
		return tls.Certificate{}, err
	}

	if l.validity == 0 {
		l.validity = certValidity
	}

	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: l.commonName, Organization: l.organization},
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(l.validity),
		IPAddresses:  l.ips,
		DNSNames:     l.dns,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  l.usage,
	}

	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("sign certificate %q: %w", l.commonName, err)
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

// pemPair encodes a certificate and its key.
func pemPair(c tls.Certificate) (cert, key []byte, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return nil, nil, fmt.Errorf("encode key: %w", err)
	}

	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// certValidity of a server certificate, as Talos issues them.
const certValidity = 24 * time.Hour
