package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// Source streams a snapshot of a member of etcd.
type Source func(ctx context.Context, to io.Writer) error

// Archive is the snapshots of one cluster in a store.
type Archive struct {
	Store store.Store
	// Prefix of the keys, without slashes at its ends, and the cluster's name below it.
	Prefix, Cluster string
	// Mark tells this cluster from all others, those of its name included: 8 to 64 digits
	// of lower-case hexadecimal. It is part of the keys.
	Mark string
	// Scratch is the folder for the copy of the database whose pages are checked, as large
	// as the database; empty for that of the system. The copy has no name, so that a killed
	// run leaves nothing there.
	Scratch string
}

// Facts are recorded with a snapshot, as whoever takes it knows them.
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
	Facts
}

// recordLimit is more bytes than any record has.
const recordLimit = 1 << 16

var marks = regexp.MustCompile(`^[0-9a-f]{8,64}$`)

// folder is where the cluster's keys are.
func (a Archive) folder() string { return path.Join(a.Prefix, a.Cluster) }

// valid keeps keys apart that a slash would join.
func (a Archive) valid() error {
	switch {
	case a.Cluster == "" || strings.Contains(a.Cluster, "/"):
		return fmt.Errorf("%q is no name of a cluster", a.Cluster)
	case !marks.MatchString(a.Mark):
		return fmt.Errorf("%q is no mark of a cluster", a.Mark)
	case a.Prefix != strings.Trim(a.Prefix, "/"):
		return fmt.Errorf("the prefix %q begins or ends with a slash", a.Prefix)
	default:
		return nil
	}
}

// Take stores a new snapshot and its record. When it returns no error, the stream's sum and
// the pages of the database were verified and the store holds what was sent. After an error
// nothing is stored. A stream that is not whole is ErrIncomplete, a database that is not
// sound ErrDamaged.
func (a Archive) Take(ctx context.Context, at time.Time, facts Facts, sealing Sealing, source Source) (_ Record, err error) {
	if err := a.valid(); err != nil {
		return Record{}, err
	}

	scratch, err := unnamed(a.Scratch)
	if err != nil {
		return Record{}, err
	}

	defer func() { err = errors.Join(err, scratch.Close()) }()

	var (
		key      = newKey(a.folder(), at, a.Mark, sealing)
		database Database
	)

	object, err := piped(ctx, func(ctx context.Context, to io.Writer) (err error) {
		database, err = stream(ctx, scratch, sealing, source, to)
		return err
	}, func(body io.Reader) (store.Object, error) { return a.Store.Put(ctx, key, body) })
	if err != nil {
		return Record{}, fmt.Errorf("store a snapshot of etcd: %w", err)
	}

	record := Record{
		Key: key, Cluster: a.Cluster, Mark: a.Mark, At: at.UTC().Truncate(time.Second), Size: object.Size, SHA256: object.SHA256,
		Checksum: object.Checksum, Compression: sealing.Compression(), Encryption: sealing.Encryption(), Database: database, Facts: facts,
	}

	if err := a.note(ctx, record); err != nil {
		return Record{}, errors.Join(err, a.Store.Delete(context.WithoutCancel(ctx), key))
	}

	return record, nil
}

// note stores the record of a snapshot.
func (a Archive) note(ctx context.Context, record Record) error {
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}

	if _, err := a.Store.Put(ctx, record.Key+recordSuffix, strings.NewReader(string(data)+"\n")); err != nil {
		return fmt.Errorf("store the record of a snapshot: %w", err)
	}

	return nil
}

// Entry is a snapshot in the store.
type Entry struct {
	store.Object
	Name Name
	// Record is nil when there is none: whoever stored the snapshot was killed before it
	// was recorded, or somebody removed it. The snapshot is whole nevertheless.
	Record *Record
}

// List tells of the cluster's snapshots with their records, oldest first.
func (a Archive) List(ctx context.Context) ([]Entry, error) {
	objects, err := a.objects(ctx)
	if err != nil {
		return nil, err
	}

	var entries []Entry

	for _, o := range objects {
		name, ok := ParseKey(o.Key)
		if !ok || name.Mark != a.Mark {
			continue
		}

		record, err := a.Recorded(ctx, o.Key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}

		entries = append(entries, Entry{Object: o, Name: name, Record: record})
	}

	return entries, nil
}

func (a Archive) objects(ctx context.Context) ([]store.Object, error) {
	if err := a.valid(); err != nil {
		return nil, err
	}

	return a.Store.List(ctx, a.folder()+"/etcd-snapshot-")
}

// Recorded reads the record of a snapshot, or store.ErrNotFound.
func (a Archive) Recorded(ctx context.Context, key string) (_ *Record, err error) {
	body, err := a.Store.Open(ctx, key+recordSuffix, store.Range{})
	if err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, body.Close()) }()

	var record Record
	if err := json.NewDecoder(io.LimitReader(body, recordLimit)).Decode(&record); err != nil {
		return nil, fmt.Errorf("read the record of %s: %w", key, err)
	}

	if record.Key != key {
		return nil, fmt.Errorf("read the record of %s: it is that of %s", key, record.Key)
	}

	return &record, nil
}

// Remove deletes a snapshot and its record. It is idempotent. The record goes first: what is
// left in between is listed, so that it can be removed again.
func (a Archive) Remove(ctx context.Context, key string) error {
	if name, ok := ParseKey(key); !ok || name.Mark != a.Mark {
		return fmt.Errorf("%s is no snapshot of this cluster", key)
	}

	if err := a.Store.Delete(ctx, key+recordSuffix); err != nil {
		return err
	}

	return a.Store.Delete(ctx, key)
}

// Retain removes the snapshots that a retention lets go and returns how many are left.
func (a Archive) Retain(ctx context.Context, r Retention, now time.Time) (left int, removed []string, err error) {
	objects, err := a.objects(ctx)
	if err != nil {
		return 0, nil, err
	}

	for _, o := range objects {
		if name, ok := ParseKey(o.Key); ok && name.Mark == a.Mark {
			left++
		}
	}

	for _, key := range r.Expired(objects, a.Mark, now) {
		if err := a.Remove(ctx, key); err != nil {
			return left, removed, err
		}

		left--

		removed = append(removed, key)
	}

	return left, removed, nil
}

// Sweep removes what killed runs left half stored and began before that time. Whoever calls
// it knows that no other run takes a snapshot of this cluster.
func (a Archive) Sweep(ctx context.Context, before time.Time) (int, error) {
	if err := a.valid(); err != nil {
		return 0, err
	}

	return a.Store.Sweep(ctx, a.folder()+"/etcd-snapshot-", before)
}
