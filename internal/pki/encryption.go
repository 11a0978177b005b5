package pki

import (
	"errors"
	"fmt"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"go.yaml.in/yaml/v4"
)

// EncryptionKey is a key that an API server encrypts Secrets with in etcd, or reads them with.
type EncryptionKey struct {
	// Provider and Name are how kube-apiserver knows the key. Both are part of every Secret that it encrypted.
	Provider, Name string
	// Secret is the key in base64.
	Secret string
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
	var found struct {
		Config struct {
			Resources []struct {
				Resources []string               `yaml:"resources"`
				Providers []map[string]yaml.Node `yaml:"providers"`
			} `yaml:"resources"`
		} `yaml:"config"`
	}

	if err := document.Decode(&found); err != nil {
		return err
	}

	for _, resource := range found.Config.Resources {
		if !slices.Contains(resource.Resources, "secrets") {
			continue
		}

		for _, providers := range resource.Providers {
			for provider, settings := range providers {
				if err := importProvider(provider, &settings, into.Secrets); err != nil {
					return err
				}
			}
		}
	}

	return nil
}

func importProvider(provider string, settings *yaml.Node, into *secrets.Secrets) error {
	if provider == "identity" {
		return nil
	}

	at := slices.IndexFunc(encryptionKeys, func(k encryptionKey) bool { return k.provider == provider })
	if at < 0 {
		return fmt.Errorf("provider %s: %w", provider, errNoPlace)
	}

	var found struct {
		Keys []struct {
			Name   string `yaml:"name"`
			Secret string `yaml:"secret"`
		} `yaml:"keys"`
	}

	if err := settings.Decode(&found); err != nil {
		return err
	}

	place := encryptionKeys[at].of(into)

	for _, key := range found.Keys {
		switch {
		case key.Name != encryptionKeys[at].name:
			return fmt.Errorf("key %q of %s: %w", key.Name, provider, errNoPlace)
		case *place != "" && *place != key.Secret:
			return fmt.Errorf("two keys %q of %s: %w", key.Name, provider, errNoPlace)
		}

		*place = key.Secret
	}

	return nil
}
