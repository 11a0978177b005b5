package pki

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// EncryptionKey is a key that an API server encrypts Secrets with in etcd, or reads them with.
type EncryptionKey struct {
	// Provider and Name are how kube-apiserver knows the key. Both are part of every Secret that it encrypted.
	Provider, Name string
	// Secret is the key in base64.
	Secret string
}

// String names the key without the secret.
func (k EncryptionKey) String() string {
	if k.Name == "" {
		return "provider " + k.Provider
	}

	return fmt.Sprintf("key %q of %s", k.Name, k.Provider)
}

// encryptionKey is where a bundle keeps the key of a provider.
type encryptionKey struct {
	provider, name string
	of             func(*secrets.Secrets) *string
}

// encryptionKeys are the keys of a bundle with the names and in the order of Talos (1.14,
// k8s/internal/k8stemplates/apiserver.go, APIServerEncryptionConfig): the first one encrypts, and each of them reads.
// Clusters that are older than Talos 1.3 have the second one.
var encryptionKeys = []encryptionKey{
	{"secretbox", "key2", func(s *secrets.Secrets) *string { return &s.SecretboxEncryptionSecret }},
	{"aescbc", "key1", func(s *secrets.Secrets) *string { return &s.AESCBCEncryptionSecret }},
}

// EncryptionKeys are the keys for Secrets in etcd, in the order in which an API server has to try them: the first one
// encrypts.
func (b *Bundle) EncryptionKeys() []EncryptionKey {
	var keys []EncryptionKey

	for _, key := range encryptionKeys {
		if secret := *key.of(b.secrets.Secrets); secret != "" {
			keys = append(keys, EncryptionKey{Provider: key.provider, Name: key.name, Secret: secret})
		}
	}

	return keys
}

// CurrentDigest is Digest without the former key for Secrets, so that it stays the same when that key is removed.
func (b *Bundle) CurrentDigest() string {
	if len(b.EncryptionKeys()) < 2 {
		return b.Digest()
	}

	out := b.copy()
	for _, former := range encryptionKeys[1:] {
		*former.of(out.secrets.Secrets) = ""
	}

	return out.Digest()
}

// DropsEncryptionKey reports whether a bundle of the same cluster has a key for Secrets that b lacks.
func (b *Bundle) DropsEncryptionKey(was *Bundle) bool {
	return slices.ContainsFunc(was.EncryptionKeys(), func(k EncryptionKey) bool {
		return !slices.Contains(b.EncryptionKeys(), k)
	})
}

// errNoPlace is wrapped by errors about keys that a bundle cannot hold. They quote no key.
var errNoPlace = errors.New("a bundle cannot contain this encryption of Secrets; take the bundle from the " +
	"file of `talosctl gen secrets`, and write the document as a patch")

// importEncryption takes the keys that Secrets are encrypted with. A key that the bundle could not hold, or would write
// under another name, is an error: API servers could not read what it encrypted.
func importEncryption(document *yaml.Node, into *secrets.Bundle) error {
	keys, err := encryptionIn(document)
	if err != nil {
		return err
	}

	for _, key := range keys {
		at := placeOf(key)
		if at < 0 {
			return fmt.Errorf("%s: %w", key, errNoPlace)
		}

		place := encryptionKeys[at].of(into.Secrets)
		if *place != "" && *place != key.Secret {
			return fmt.Errorf("two with %s: %w", key, errNoPlace)
		}

		*place = key.Secret
	}

	return nil
}

// placeOf is where a bundle has a key; negative if it has no place for it.
func placeOf(key EncryptionKey) int {
	return slices.IndexFunc(encryptionKeys, func(k encryptionKey) bool {
		return k.provider == key.Provider && k.name == key.Name
	})
}

// encryptionIn reads the keys for Secrets from a document. A provider without keys, such as kms, counts as a key
// without a name.
func encryptionIn(document *yaml.Node) (keys []EncryptionKey, err error) {
	var found struct {
		Config struct {
			Resources []struct {
				Resources []string               `yaml:"resources"`
				Providers []map[string]yaml.Node `yaml:"providers"`
			} `yaml:"resources"`
		} `yaml:"config"`
	}

	if err := document.Decode(&found); err != nil {
		return nil, err
	}

	for _, resource := range found.Config.Resources {
		if !slices.Contains(resource.Resources, "secrets") {
			continue
		}

		for _, providers := range resource.Providers {
			for provider, settings := range providers {
				more, err := keysOf(provider, &settings)
				if err != nil {
					return nil, err
				}

				keys = append(keys, more...)
			}
		}
	}

	return keys, nil
}

func keysOf(provider string, settings *yaml.Node) (keys []EncryptionKey, err error) {
	if provider == "identity" {
		return nil, nil
	}

	var found struct {
		Keys []struct {
			Name   string `yaml:"name"`
			Secret string `yaml:"secret"`
		} `yaml:"keys"`
	}

	if err := settings.Decode(&found); err != nil {
		return nil, err
	}

	for _, key := range found.Keys {
		keys = append(keys, EncryptionKey{Provider: provider, Name: key.Name, Secret: key.Secret})
	}

	if len(keys) == 0 {
		keys = []EncryptionKey{{Provider: provider}}
	}

	return keys, nil
}

// UnreadableWith lists the keys for Secrets in the configuration of a running control plane that another configuration
// lacks and that no bundle can hold. With the other configuration, API servers could not read what these keys
// encrypted: kube-apiserver finds a key by the provider and name that a stored Secret begins with (k8s.io/apiserver,
// encryptionconfig).
func UnreadableWith(other, running []byte) ([]EncryptionKey, error) {
	had, err := documentKeys(running)
	if err != nil || len(had) == 0 {
		return nil, err
	}

	has, err := documentKeys(other)

	return slices.DeleteFunc(had, func(key EncryptionKey) bool {
		return placeOf(key) >= 0 || slices.Contains(has, key)
	}), err
}

// documentKeys are the keys for Secrets in the document of a configuration that has them. The fields of the main
// document only have keys that a bundle can hold.
func documentKeys(config []byte) ([]EncryptionKey, error) {
	documents, err := documentsByKind(config)
	if err != nil {
		return nil, err
	}

	own := documents[places.SecretboxKey.Document.Kind]
	if own == nil {
		return nil, nil
	}

	keys, err := encryptionIn(own)
	if err != nil {
		return nil, errShape
	}

	return keys, nil
}

// ReadsEncryption reports whether the encryption configuration of a document can be read, as kube-apiserver and every
// comparison of keys have to. Talos checks only that there is one (machinery 1.14, config/types/k8s Validate).
func ReadsEncryption(config map[string]any) bool {
	var document yaml.Node

	if err := document.Encode(map[string]any{"config": config}); err != nil {
		return false
	}

	_, err := encryptionIn(&document)

	return err == nil
}

// HasEncryptionKey reports whether the document of a configuration has the key with a digest.
func HasEncryptionKey(config []byte, digest string) (bool, error) {
	keys, err := documentKeys(config)

	return slices.ContainsFunc(keys, func(k EncryptionKey) bool { return k.Digest() == digest }), err
}

// Digest is the same for the same key, and does not tell its secret.
func (k EncryptionKey) Digest() string {
	sum := sha256.Sum256([]byte(k.Provider + "\x00" + k.Name + "\x00" + k.Secret))

	return hex.EncodeToString(sum[:8])
}
