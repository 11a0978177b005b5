package certs

import (
	"errors"

	"github.com/talosop/terraform-provider-talosop/internal/sim/process"
)

// WritePair writes a certificate and its key as name.crt and name.key.
func WritePair(dir, name string, issuer *Authority, l Leaf) error {
	l.Ecdsa = true
	l.Validity = 365 * CertValidity

	cert, err := issuer.Issue(l)
	if err != nil {
		return err
	}

	certPEM, keyPEM, err := PemPair(cert)
	if err != nil {
		return err
	}

	return errors.Join(process.WriteFile(dir, name+".crt", certPEM), process.WriteFile(dir, name+".key", keyPEM))
}
