package tftest

import (
	_ "embed" // the service account key
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	talossecrets "github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// newSecrets are the bundles that every process of these tests treats as new, so that one apply creates clusters
// with them, and the processes.
var newSecrets struct {
	mu        sync.Mutex
	bundles   []*pki.Bundle
	processes []*providerdata.ProviderData
}

// takenForNew makes every process treat a bundle as new.
func takenForNew(bundle *pki.Bundle) {
	newSecrets.mu.Lock()
	defer newSecrets.mu.Unlock()

	newSecrets.bundles = append(newSecrets.bundles, bundle)
	for _, m := range newSecrets.processes {
		m.Ledger().NoteUnused(bundle)
	}
}

// ParsedBundle is the secrets in a text.
func ParsedBundle(t *testing.T, text string) *pki.Bundle {
	t.Helper()

	bundle, err := pki.Parse([]byte(text))
	Must(t, err)

	return bundle
}

// SecretsIn lists the secrets of a bundle, in every form in which they are sent.
func SecretsIn(bundle string) []string { return clitest.SecretsIn(tf.MasksOf(bundle)) }

// NewBundle is new secrets, which every process treats as new.
func NewBundle(t *testing.T) string {
	t.Helper()

	bundle, err := QuickBundle()
	Must(t, err)
	takenForNew(bundle)

	content, err := bundle.YAML()
	Must(t, err)

	return string(content)
}

// firstBundle is one bundle for all tests.
var firstBundle = sync.OnceValues(QuickBundle)

// serviceAccountKey is a key of RSA that was made for these tests, as Talos makes them.
//
//go:embed testdata/test-only-service-account.key
var serviceAccountKey []byte

// QuickBundle is a new bundle with the service account key that all share: generating an RSA key takes a second or
// more.
func QuickBundle() (*pki.Bundle, error) {
	// For so old a Talos the key is not an RSA key.
	generated, err := talossecrets.NewBundle(talossecrets.NewFixedClock(time.Now().Add(-time.Hour)),
		config.TalosVersion1_6)
	if err != nil {
		return nil, err
	}

	generated.Certs.K8sServiceAccount.Key = serviceAccountKey

	return pki.Wrap(generated)
}

// MarkOf is the mark of the cluster of a bundle.
func MarkOf(t *testing.T, bundle string) string {
	t.Helper()

	parsed, err := pki.Parse([]byte(bundle))
	if err != nil {
		t.Fatal(err)
	}

	return parsed.Mark()
}

// RecordKeysOf are the keys that authenticate records of snapshots of the cluster of a bundle.
func RecordKeysOf(t *testing.T, bundle string) [][]byte {
	t.Helper()

	parsed, err := pki.Parse([]byte(bundle))
	if err != nil {
		t.Fatal(err)
	}

	return parsed.RecordKeys()
}

// Bundle is the secrets of the cluster of most tests, as YAML.
var Bundle = sync.OnceValue(func() string {
	bundle, err := firstBundle()
	if err != nil {
		panic(err)
	}

	encoded, err := bundle.YAML()
	if err != nil {
		panic(err)
	}

	return string(encoded)
})
