package pki

import (
	"bytes"
	stdx509 "crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	talosx509 "github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"github.com/siderolabs/talos/pkg/machinery/role"
)

// Credentials are what a client needs to prove itself and to verify the server. They print without their contents.
type Credentials struct {
	// CA is the PEM certificate of the authority that signed both sides. While machines may accept another one, too, those
	// of the others follow it.
	CA []byte
	// Certificate and Key are the client's, in PEM.
	Certificate, Key []byte
	// NotBefore lies an hour in the past, for servers whose clock runs behind, though never before the
	// authority's own. NotAfter ends the lifetime that was asked for, or the authority's. Both are UTC.
	NotBefore, NotAfter time.Time
	// Former are the same client by the other authorities in CA, for servers whose own certificate one of them signed:
	// such a server may not know the present one yet.
	Former []Credentials
}

// TalosClient mints a client certificate for the Talos API of every machine of the cluster, offline. Roles
// are those of Talos ("os:admin", "os:reader", …); Talos 1.13 ignores names it does not know, so an unknown
// one is an error here. There is no way to revoke the certificate before its lifetime has passed.
func (b *Bundle) TalosClient(roles []string, ttl time.Duration) (Credentials, error) {
	set, unknown := role.Parse(roles)
	if len(unknown) > 0 {
		return Credentials{}, fmt.Errorf("create Talos client certificate: unknown roles %s; Talos knows %s",
			strings.Join(unknown, ", "), strings.Join(role.All.Strings(), ", "))
	}

	if len(set.Strings()) == 0 {
		return Credentials{}, errors.New("create Talos client certificate: at least one role is required")
	}

	credentials, err := b.mintAll(b.everyTalosCA(), ttl, func(ca *talosx509.PEMEncodedCertificateAndKey) signer {
		return func(notBefore time.Time, validity time.Duration) (*talosx509.PEMEncodedCertificateAndKey, error) {
			return secrets.NewAdminCertificateAndKey(notBefore, ca, set, validity)
		}
	})
	if err != nil {
		return Credentials{}, fmt.Errorf("create Talos client certificate: %w", err)
	}

	return credentials, nil
}

// KubernetesClient mints a client certificate for the Kubernetes API, offline. Kubernetes takes the user
// and the groups from the certificate; "system:masters" is the group that may do everything. There is no
// way to revoke the certificate before its lifetime has passed.
func (b *Bundle) KubernetesClient(user string, groups []string, ttl time.Duration) (Credentials, error) {
	if user == "" {
		return Credentials{}, errors.New("create Kubernetes client certificate: a user name is required")
	}

	credentials, err := b.mintAll(b.everyKubernetesCA(), ttl, func(ca *talosx509.PEMEncodedCertificateAndKey) signer {
		return func(notBefore time.Time, validity time.Duration) (*talosx509.PEMEncodedCertificateAndKey, error) {
			authority, err := talosx509.NewCertificateAuthorityFromCertificateAndKey(ca)
			if err != nil {
				return nil, err
			}

			pair, err := talosx509.NewKeyPair(authority,
				talosx509.CommonName(user),
				talosx509.Organization(groups...),
				talosx509.NotBefore(notBefore),
				talosx509.NotAfter(notBefore.Add(validity)),
				talosx509.KeyUsage(stdx509.KeyUsageDigitalSignature|stdx509.KeyUsageKeyEncipherment),
				talosx509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}),
			)
			if err != nil {
				return nil, err
			}

			return talosx509.NewCertificateAndKeyFromKeyPair(pair), nil
		}
	})
	if err != nil {
		return Credentials{}, fmt.Errorf("create Kubernetes client certificate: %w", err)
	}

	return credentials, nil
}

type signer func(notBefore time.Time, validity time.Duration) (*talosx509.PEMEncodedCertificateAndKey, error)

// mintAll signs with each of the authorities, the present one first. It leaves out other authorities that have
// expired: no server accepts what they signed.
func (b *Bundle) mintAll(
	authorities []*talosx509.PEMEncodedCertificateAndKey, ttl time.Duration,
	by func(*talosx509.PEMEncodedCertificateAndKey) signer,
) (Credentials, error) {
	credentials, err := b.mint(authorities[0], ttl, by(authorities[0]))
	if err != nil {
		return Credentials{}, err
	}

	for _, ca := range authorities[1:] {
		former, err := b.mint(ca, ttl, by(ca))
		if err != nil {
			continue
		}

		credentials.CA = append(bytes.Clone(credentials.CA), ca.Crt...)
		credentials.Former = append(credentials.Former, former)
	}

	return credentials, nil
}

// mint fits the wanted lifetime into that of the authority and signs.
func (b *Bundle) mint(ca *talosx509.PEMEncodedCertificateAndKey, ttl time.Duration, sign signer) (Credentials, error) {
	if ttl <= 0 {
		return Credentials{}, fmt.Errorf("lifetime %s is not positive", ttl)
	}

	authority, err := ca.GetCert()
	if err != nil {
		return Credentials{}, fmt.Errorf("read the CA certificate: %w", err)
	}

	// Certificates count in seconds.
	now := b.secrets.Clock.Now().UTC().Truncate(time.Second)

	if !now.Before(authority.NotAfter) {
		return Credentials{}, fmt.Errorf("the CA certificate expired at %s", authority.NotAfter.UTC().Format(time.RFC3339))
	}

	if now.Before(authority.NotBefore) {
		return Credentials{}, fmt.Errorf(
			"the CA certificate is not valid before %s, and the local time is %s: check the clock of this computer",
			authority.NotBefore.UTC().Format(time.RFC3339), now.Format(time.RFC3339))
	}

	notBefore, notAfter := now.Add(-clockSkew), now.Add(ttl)
	if notBefore.Before(authority.NotBefore) {
		notBefore = authority.NotBefore.UTC()
	}

	if notAfter.After(authority.NotAfter) {
		notAfter = authority.NotAfter.UTC()
	}

	pair, err := sign(notBefore, notAfter.Sub(notBefore))
	if err != nil {
		return Credentials{}, err
	}

	return Credentials{CA: ca.Crt, Certificate: pair.Crt, Key: pair.Key, NotBefore: notBefore, NotAfter: notAfter}, nil
}
