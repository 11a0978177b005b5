package backup

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"
)

// connecting are the keys of Kubernetes that connect a cluster which is restored elsewhere to the one that the snapshot
// was taken of. A slash at the end stands for all keys below. Kubernetes and Talos create all of them again.
var connecting = []string{
	// Talos looks for members of etcd at the addresses in default/kubernetes, so a joining control plane would
	// join the running cluster (Talos 1.13, internal/pkg/etcd/endpoints.go). And pods reach the API server there
	// with tokens that the running cluster accepts. API servers fill it from their master leases, which outlive a
	// restore.
	"/registry/masterleases/",
	"/registry/services/endpoints/default/kubernetes",
	"/registry/endpointslices/default/kubernetes",
	// The Talos API that pods may use (Talos 1.13, kubeaccess/endpoint.go).
	"/registry/services/endpoints/default/talos",
	"/registry/endpointslices/default/talos-ipv4",
	"/registry/endpointslices/default/talos-ipv6",
	// kube-proxy connects to the server in it, which is the endpoint of the cluster without KubePrism (Talos 1.13,
	// k8stemplates/kubeconfig.go).
	"/registry/configmaps/kube-system/kubeconfig-in-cluster",
	// Networks of pods lead to the addresses of nodes, and controllers of clouds act on their machines.
	"/registry/minions/",
	// The rights of talosop runs on the other cluster. A backup would wait until the lease expires.
	"/registry/leases/kube-system/talosop",
	"/registry/leases/kube-system/talosop-backup",
}

// connects reports whether a key is one of them.
func connects(key string) bool {
	return slices.ContainsFunc(connecting, func(one string) bool {
		return key == one || strings.HasSuffix(one, "/") && strings.HasPrefix(key, one)
	})
}

// Isolate deletes from the snapshot what connects a restored cluster to the one that it was taken of, and returns the
// keys. It deletes as etcd does, with a separate revision, so that all else is as it was. The pages of the snapshot
// were verified when it was opened. Readers from before are not valid any more.
func (s *Snapshot) Isolate(ctx context.Context) (deleted []string, err error) {
	if err := s.file.Truncate(s.size - sumSize); err != nil {
		return nil, fmt.Errorf("remove the checksum from the snapshot: %w", err)
	}

	deleted, size, err := deleteConnecting(s.file)
	if err != nil {
		return nil, fmt.Errorf("delete keys from the snapshot: %w", err)
	}

	// bbolt grows its file ahead of its use. The unused end is no part of a snapshot.
	if err := s.file.Truncate(size); err != nil {
		return nil, fmt.Errorf("truncate the modified snapshot: %w", err)
	}

	return deleted, s.seal(ctx)
}

// deleteConnecting deletes the keys that connect from the database in a file, and returns how long that is now.
func deleteConnecting(file *scratch) (deleted []string, size int64, err error) {
	db, err := bbolt.Open(file.Name(), 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true,
		OpenFile: func(string, int, os.FileMode) (*os.File, error) { return again(file.File) }})
	if err != nil {
		return nil, 0, err
	}

	defer func() { err = errors.Join(err, db.Close()) }()

	err = db.Update(func(tx *bbolt.Tx) error {
		keys := tx.Bucket(keyBucket)

		found, last, err := living(keys)
		if err != nil {
			return err
		}

		deleted = found

		for i, key := range found {
			if err := keys.Put(tombstone(last+1, i), protowire.AppendString(
				protowire.AppendTag(nil, keyField, protowire.BytesType), key)); err != nil {
				return err
			}
		}

		return nil
	})

	if err == nil {
		err = db.View(func(tx *bbolt.Tx) error {
			size = tx.Size()

			return nil
		})
	}

	return deleted, size, err
}

// living are the keys that connect and were not deleted, in the order in which they were created, and the last
// revision.
func living(keys *bbolt.Bucket) (found []string, last uint64, err error) {
	lives := map[string]bool{}

	err = keys.ForEach(func(revision, value []byte) error {
		if !isRevision(revision) {
			return damaged("%x is not an etcd revision", revision)
		}

		last = max(last, binary.BigEndian.Uint64(revision))

		stored, err := keyOf(value)
		if err != nil {
			return err
		}

		key := string(stored)
		if !connects(key) {
			return nil
		}

		if _, known := lives[key]; !known {
			found = append(found, key)
		}

		lives[key] = len(revision) == revisionSize

		return nil
	})
	if err == nil && last >= math.MaxInt64 {
		err = damaged("the last revision %d is out of range", last)
	}

	return without(found, lives), last, err
}

// without leaves out the keys that do not live.
func without(keys []string, lives map[string]bool) []string {
	var left []string

	for _, key := range keys {
		if lives[key] {
			left = append(left, key)
		}
	}

	return left
}

// The form of a revision, and of a key that was deleted in it (etcd 3.6, mvcc/revision.go and api/mvccpb/kv.proto).
const (
	revisionSize  = 17
	tombstoneMark = 't'
	keyField      = 1
)

// tombstone is the revision in which a key is deleted, the i-th one of a transaction.
func tombstone(main uint64, i int) []byte {
	revision := append(binary.BigEndian.AppendUint64(nil, main), '_')
	revision = binary.BigEndian.AppendUint64(revision, uint64(i)) //nolint:gosec // an index is never negative

	return append(revision, tombstoneMark)
}

// keyOf is the key of an entry, whose memory it shares.
func keyOf(entry []byte) ([]byte, error) {
	for len(entry) > 0 {
		number, kind, n := protowire.ConsumeTag(entry)
		if n < 0 {
			return nil, damaged("decode an etcd entry: %v", protowire.ParseError(n))
		}

		entry = entry[n:]

		if number == keyField && kind == protowire.BytesType {
			key, n := protowire.ConsumeBytes(entry)
			if n < 0 {
				break
			}

			return key, nil
		}

		if n = protowire.ConsumeFieldValue(number, kind, entry); n < 0 {
			break
		}

		entry = entry[n:]
	}

	return nil, damaged("an etcd entry has no key")
}

// seal verifies the database again, and appends its sum.
func (s *Snapshot) seal(ctx context.Context) (err error) {
	info, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("read the modified snapshot: %w", err)
	}

	pages, err := newScan("")
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, pages.Close()) }()

	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(sum, pages), io.NewSectionReader(s.file, 0, info.Size())); err != nil {
		return fmt.Errorf("read the modified snapshot: %w", err)
	}

	if s.Database, err = pages.database(ctx); err != nil {
		return fmt.Errorf("verify the modified snapshot: %w", err)
	}

	if _, err := s.file.WriteAt(sum.Sum(nil), info.Size()); err != nil {
		return fmt.Errorf("write the checksum of the modified snapshot: %w", err)
	}

	s.size = info.Size() + sumSize

	return nil
}
