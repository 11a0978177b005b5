package backup

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// Facts are recorded with a snapshot, as the run that takes it knows them.
type Facts struct {
	Member            string `json:"member,omitempty"`
	TalosVersion      string `json:"talos_version,omitempty"`
	KubernetesVersion string `json:"kubernetes_version,omitempty"`
}

// Record is what is known of a snapshot. It is stored beside the snapshot, in clear text,
// under the snapshot's key with .json.
type Record struct {
	Key     string    `json:"key"`
	Cluster string    `json:"cluster"`
	Mark    string    `json:"mark"`
	At      time.Time `json:"time"`
	// Size, SHA256 and Checksum are those of the stored bytes; Checksum is the store's own.
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256"`
	Checksum string `json:"checksum,omitempty"`

	Compression string   `json:"compression,omitempty"`
	Encryption  string   `json:"encryption,omitempty"`
	Database    Database `json:"database"`
	// Objects are the numbers of Kubernetes objects by resource, such as secrets or certificates.cert-manager.io, without
	// those that Isolate deletes; nil in a record that has none.
	Objects map[string]int64 `json:"objects"`
	Facts
	// Secrets are those stored beside the snapshot, if any.
	Secrets Secrets `json:"secrets,omitzero"`

	// Authentic is whether a key of the cluster wrote this. Any client can write all others.
	Authentic bool `json:"-"`
}

// Secrets are the sealed secrets stored beside a snapshot. SHA256 is that of the stored bytes.
type Secrets struct {
	Key    string `json:"key"`
	SHA256 string `json:"sha256"`
}

var (
	// ErrRecord is a record that was changed after it was written.
	ErrRecord = errors.New("the snapshot record is corrupt")
	// ErrForeign is a snapshot of a cluster with other secrets: those of Kubernetes in it are
	// encrypted and its tokens signed with keys that only the other cluster has.
	ErrForeign = errors.New("the snapshot belongs to another cluster")
)

// errLarge is an object with more bytes than anything that belongs there.
var errLarge = errors.New("the object is too large")

// recordLimit is more bytes than any record has, also with the objects of some thousand custom resources.
const recordLimit = 1 << 20

// recordSum is what follows the members of a record: the SHA-256 of all bytes before it. Records are never
// rewritten, so it covers the text and not its meaning.
const recordSum = ",\n  \"sum\": \"%x\"\n}\n"

// recordMAC is what comes before that: the HMAC-SHA256 of all bytes before it, with a key of the cluster. The sum
// distinguishes a damaged record from a foreign one.
const recordMAC = ",\n  \"mac\": \"%x\""

// macOf authenticates the members of a record.
func macOf(key, members []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(members)

	return mac.Sum(nil)
}

// encoded is the record as it is stored, authenticated with the first of the keys, if any.
func (r Record) encoded(keys [][]byte) ([]byte, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}

	data = bytes.TrimSuffix(data, []byte("\n}"))
	if len(keys) > 0 {
		data = fmt.Appendf(data, recordMAC, macOf(keys[0], data))
	}

	return fmt.Appendf(data, recordSum, sha256.Sum256(data)), nil
}

// decoded decodes a record. Unknown members are those of a later version.
func decoded(data []byte, keys [][]byte) (*Record, error) {
	end := len(data) - len(fmt.Sprintf(recordSum, [sha256.Size]byte{}))
	if end < 0 || !bytes.Equal(data[end:], fmt.Appendf(nil, recordSum, sha256.Sum256(data[:end]))) {
		return nil, fmt.Errorf("%w: the checksum does not match", ErrRecord)
	}

	var record Record
	if err := json.Unmarshal(data, &record); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}

	record.Authentic = authentic(data[:end], keys)

	return &record, nil
}

// authentic reports whether one of the keys wrote the members of a record, which a MAC follows.
func authentic(data []byte, keys [][]byte) bool {
	end := len(data) - len(fmt.Sprintf(recordMAC, [sha256.Size]byte{}))
	if end < 0 {
		return false
	}

	return slices.ContainsFunc(keys, func(key []byte) bool {
		return hmac.Equal(data[end:], fmt.Appendf(nil, recordMAC, macOf(key, data[:end])))
	})
}

// Recorded reads the record of a snapshot, which says itself whether it is authentic. There is none:
// store.ErrNotFound. It is not as it was written, or that of another snapshot: ErrRecord. The keys in it are those of
// this snapshot and of what is beside it, also when they were copied from another folder.
func (a Archive) Recorded(ctx context.Context, key string) (*Record, error) {
	data, err := a.small(ctx, key+recordSuffix, recordLimit)
	if errors.Is(err, errLarge) {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	} else if err != nil {
		return nil, err
	}

	record, err := decoded(data, a.RecordKeys)
	if err != nil {
		return nil, fmt.Errorf("read the record of %s: %w", key, err)
	}

	// The folder may be another one: snapshots are copied.
	if path.Base(record.Key) != path.Base(key) {
		return nil, fmt.Errorf("read the record of %s: %w: it describes %s", key, ErrRecord, record.Key)
	}

	if record.Key != key {
		if err := a.moved(ctx, record, key); err != nil {
			return nil, fmt.Errorf("look up the secrets of %s: %w", key, err)
		}
	}

	return record, nil
}

// Unrecorded reports whether an error of Recorded leaves open that the snapshot has no record: there is none, or
// the store does not allow reading it. AWS reports a missing object only to users who may list the bucket
// (s3:ListBucket); for all others it answers 403 (GetObject).
func Unrecorded(err error) bool {
	return errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDenied)
}

// moved gives the record of a copied snapshot its own keys: removing the copy must not remove the original.
// Secrets that were not copied are not part of the copy.
func (a Archive) moved(ctx context.Context, record *Record, key string) error {
	record.Key = key

	if record.Secrets.Key == "" {
		return nil
	}

	record.Secrets.Key = secretsKey(key)

	_, err := a.Store.Head(ctx, record.Secrets.Key)
	if errors.Is(err, store.ErrNotFound) {
		record.Secrets = Secrets{}
		return nil
	}

	return err
}

// small reads an object that has at most so many bytes; errLarge: it has more.
func (a Archive) small(ctx context.Context, key string, limit int64) (_ []byte, err error) {
	body, err := a.Store.Open(ctx, key, store.Range{})
	if err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, body.Close()) }()

	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}

	if int64(len(data)) > limit {
		return nil, fmt.Errorf("read %s: %w: it is larger than %d bytes", key, errLarge, limit)
	}

	return data, nil
}

// Belongs is nil when nothing says that a snapshot is of another cluster than the one with
// that mark, and ErrForeign otherwise. The record may be nil. What `talosctl etcd snapshot`
// wrote says nothing of its cluster.
func Belongs(key string, record *Record, mark string) error {
	if name, ok := ParseKey(key); ok && name.Mark != mark {
		return fmt.Errorf("%w: its key has the mark %s, this cluster has %s", ErrForeign, name.Mark, mark)
	}

	if record != nil && record.Mark != mark {
		return fmt.Errorf("%w: its record has the mark %s, this cluster has %s", ErrForeign, record.Mark, mark)
	}

	return nil
}
