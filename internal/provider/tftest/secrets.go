package tftest

import (
	"sync"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
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

	bundle, err := secretstest.Generate()
	Must(t, err)
	takenForNew(bundle)

	content, err := bundle.YAML()
	Must(t, err)

	return string(content)
}

// firstBundle is one bundle for all tests.
var firstBundle = sync.OnceValues(secretstest.Generate)

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
