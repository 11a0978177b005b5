// Package secretstest generates secrets of clusters for tests. They share one RSA key, because generating it takes most
// of a second of processor time, and several with the race detector.
package secretstest

import (
	_ "embed" // the service account key
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// serviceAccountKey is a key of RSA that was made for these tests, as Talos makes them.
//
//go:embed testdata/test-only-service-account.key
var serviceAccountKey []byte

// Generate is pki.Generate with the shared service account key.
func Generate() (*pki.Bundle, error) {
	generated, err := Secrets(time.Now().Add(-time.Hour))
	if err != nil {
		return nil, err
	}

	return pki.Wrap(generated)
}

// Secrets are new secrets with the shared service account key, in the form of the machinery library. Their certificates
// are valid from a time on.
func Secrets(from time.Time) (*secrets.Bundle, error) {
	// For so old a Talos, the library makes no RSA key. All else is the same in the releases since 1.3.
	generated, err := secrets.NewBundle(secrets.NewFixedClock(from), config.TalosVersion1_6)
	if err != nil {
		return nil, err
	}

	generated.Certs.K8sServiceAccount.Key = serviceAccountKey

	return generated, nil
}
