// Package pki holds the one thing that a Talos cluster cannot recover: its secrets bundle.
//
// A bundle is four certificate authorities (the Talos API, Kubernetes, etcd and the aggregation layer), the key
// that signs service account tokens, the tokens machines join with, and the keys that encrypt Secrets in etcd and
// identify the cluster to the discovery service. Every machine configuration is made from it and it signs every
// administrator credential. It is generated once. A change of version or name never makes a new one, because
// machines that carry the old authorities would refuse the new ones.
//
// The package does no I/O. It reads the file that `talosctl gen secrets` writes and the configuration of a
// control-plane machine, writes that same file back byte for byte, and mints short-lived client credentials
// offline. Values with keys print as a short description, so that a stray %v or a log field cannot leak them.
package pki

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// clockSkew is how far in the past the validity of every certificate begins. Machines compare it with their own
// clock, which may be slow before the first time synchronization, and refuse a certificate that is not valid yet.
const clockSkew = time.Hour

// Bundle is the secrets of one cluster. It is immutable and safe for concurrent use; copies share the same
// secrets. It prints without them. Make one with Generate, Parse or FromMachineConfig.
type Bundle struct {
	secrets *secrets.Bundle
	// next are the keys that will replace the present ones. previous are the replaced keys that are still
	// accepted, and rotated the kinds whose present key replaced another one.
	next, previous spareKeys
	rotated        []rotation.Kind
	// former are the keys that were dropped last: they are trusted only where a recorded machine works with one.
	former spareKeys
	// others are bundles of the same cluster whose keys are known, too.
	others []*Bundle
}

// Generate makes the secrets of a new cluster, in the newest shape Talos 1.10 to 1.13 understand: secretbox
// encryption of Secrets in etcd and an RSA service account key (making it takes up to a few seconds).
// Every call gives different secrets.
func Generate() (*Bundle, error) {
	// Certificate authorities are checked against the clock of the machine, too, so they start in the past
	// like everything they sign.
	clock := secrets.NewFixedClock(time.Now().Add(-clockSkew))

	generated, err := secrets.NewBundle(clock, config.TalosVersionCurrent)
	if err != nil {
		return nil, fmt.Errorf("generate secrets bundle: %w", err)
	}

	return newBundle(generated), nil
}

// newBundle takes ownership of s. The clock of a bundle decides when what it signs becomes valid, so a
// clock that was fixed for generation must not survive.
func newBundle(s *secrets.Bundle) *Bundle {
	s.Clock = secrets.NewClock()

	return &Bundle{secrets: s}
}

// YAML encodes the bundle as `talosctl gen secrets` does, and adds next and previous keys where there are any. The
// result is deterministic, and parsing and encoding it again gives the same bytes. It contains every secret of the
// cluster.
func (b *Bundle) YAML() ([]byte, error) {
	var content any = b.secrets
	if b.Rotates() {
		content = b.file()
	}

	encoded, err := yaml.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode secrets bundle: %w", err)
	}

	return encoded, nil
}

// ClusterID is the identity of the cluster at the discovery service (cluster.id of its machine
// configurations). It is not secret and it never changes.
func (b *Bundle) ClusterID() string { return b.secrets.Cluster.ID }

// Mark distinguishes this cluster from all others, those of its name included: 16 digits of lower-case
// hexadecimal that are no secret. It stays the same while certificates and keys are rotated.
func (b *Bundle) Mark() string {
	sum := sha256.Sum256([]byte(b.secrets.Cluster.ID))

	return hex.EncodeToString(sum[:8])
}

// Digest is the SHA-256 of the bundle in lower-case hexadecimal: the same for the same secrets however they are
// written, and no secret, because what it is made of cannot be guessed.
func (b *Bundle) Digest() string {
	encoded, err := b.YAML()
	if err != nil {
		return "" // it was encoded when it was parsed or generated
	}

	return fmt.Sprintf("%x", sha256.Sum256(encoded))
}

// RecordKeys are the keys that authenticate records of backups: the first one signs, and each of them verifies.
// They are derived only from the secrets that encrypt Secrets in etcd, because
//
//   - they are useful for as long as the snapshot. A snapshot cannot be restored without the secret that encrypts
//     its Secrets, so a bundle that lacks the key has no use for the record either. Authorities, the service
//     account key and tokens are replaced while earlier snapshots stay good;
//   - only control planes have them. The secret and the token of the cluster (discovery, joining) are on every
//     worker.
//
// A bundle that gets another such secret keeps the former one for as long as snapshots of its time are kept: Parse
// accepts both kinds beside each other, and each gives a key.
func (b *Bundle) RecordKeys() [][]byte { return b.controlPlaneKeys("talosop etcd snapshot record 1") }

// OwnerKeys authenticate the owner marks on nodes: the first one signs, and each of them verifies. They come from the
// same secrets as [Bundle.RecordKeys]: a worker's configuration has none of these, and no rotation changes them. Keys
// that only another known bundle of the cluster has verify, too.
func (b *Bundle) OwnerKeys() [][]byte {
	var keys [][]byte

	for _, known := range append([]*Bundle{b}, b.others...) {
		for _, key := range known.controlPlaneKeys("talosop owner mark 1") {
			if !slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) }) {
				keys = append(keys, key)
			}
		}
	}

	return keys
}

// controlPlaneKeys derives keys for one purpose from the secrets that encrypt Secrets in etcd.
func (b *Bundle) controlPlaneKeys(purpose string) [][]byte {
	var keys [][]byte

	for _, encryption := range b.EncryptionKeys() {
		// It fails for keys alone that are longer than 255 hashes (crypto/hkdf).
		key, err := hkdf.Key(sha256.New, []byte(encryption.Secret), []byte(b.ClusterID()), purpose, sha256.Size)
		if err == nil {
			keys = append(keys, key)
		}
	}

	return keys
}

// SameCluster reports whether two bundles, as Parse reads them, are known to be of one cluster.
func SameCluster(a, b string) bool {
	if a == "" || b == "" {
		return false
	}

	if a == b {
		return true
	}

	first, err := Parse([]byte(a))
	if err != nil {
		return false
	}

	second, err := Parse([]byte(b))

	return err == nil && first.Mark() == second.Mark()
}

// Secrets gives the bundle to the configuration generator of the machinery library. The result is shared
// and must not be modified.
func (b *Bundle) Secrets() *secrets.Bundle { return b.secrets }

// Wrap makes a bundle of one that the machinery library generated or read, and owns it from then on. It is
// checked as in Parse.
func Wrap(s *secrets.Bundle) (*Bundle, error) {
	if err := validate(s); err != nil {
		return nil, err
	}

	return newBundle(s), nil
}
