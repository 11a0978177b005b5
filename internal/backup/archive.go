package backup

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// Archive is the snapshots of one cluster in a store.
type Archive struct {
	Store store.Store
	// Prefix of the keys, without slashes at its ends, and the cluster's name below it.
	Prefix, Cluster string
	// Mark distinguishes this cluster from all others, those of its name included: 8 to 64 digits
	// of lower-case hexadecimal. It is part of the keys.
	Mark string
	// RecordKeys authenticate records: the first one signs, and each of them verifies. They are secrets of the
	// cluster that a client with write access to the store does not have. Without any, no record is authentic.
	RecordKeys [][]byte
	// Scratch is the folder for temporary files; empty for that of the system. Taking needs
	// some percent of the size of the database there, fetching all of it. The files have no
	// names, so that a killed run leaves nothing there.
	Scratch string
}

var marks = regexp.MustCompile(`^[0-9a-f]{8,64}$`)

// folder is where the cluster's keys are.
func (a Archive) folder() string { return path.Join(a.Prefix, a.Cluster) }

// valid refuses keys that a slash would merge.
func (a Archive) valid() error {
	switch {
	case a.Cluster == "" || strings.Contains(a.Cluster, "/"):
		return fmt.Errorf("%q is not a valid cluster name: it is empty or contains a slash", a.Cluster)
	case !marks.MatchString(a.Mark):
		return fmt.Errorf("%q is not a valid cluster mark: expected 8 to 64 hexadecimal digits", a.Mark)
	case a.Prefix != strings.Trim(a.Prefix, "/"):
		return fmt.Errorf("the prefix %q starts or ends with a slash", a.Prefix)
	default:
		return nil
	}
}

// Entry is a snapshot in the store.
type Entry struct {
	store.Object
	Name Name
	// Record is nil when there is none: the run that stored the snapshot was killed before it wrote the record, or
	// the record was removed. The snapshot is complete nevertheless.
	Record *Record
	// RecordErr is an ErrRecord when the record is unreliable, ErrUntrusted when no key of the cluster wrote it,
	// and the reason when it could not be read; Record is nil.
	RecordErr error
}

// recordsAtOnce are how many records are read side by side: a bucket far away gives some ten
// in a second, and an hourly backup makes 8,760 in a year.
const recordsAtOnce = 16

// List describes the cluster's snapshots with their records, oldest first. One record that
// cannot be read does not hide the others: its entry has the reason. With keys of the cluster a record that none of
// them wrote is as good as none.
func (a Archive) List(ctx context.Context) ([]Entry, error) {
	objects, err := a.objects(ctx)
	if err != nil {
		return nil, err
	}

	entries := a.own(objects)

	return entries, a.readRecords(ctx, entries)
}

// own are the objects that are named like snapshots of the cluster and lie in its folder: a copy below another folder
// is no further snapshot.
func (a Archive) own(objects []store.Object) []Entry {
	var entries []Entry

	for _, o := range objects {
		if name, ok := ParseKey(o.Key); ok && name.Mark == a.Mark && path.Dir(o.Key) == a.folder() {
			entries = append(entries, Entry{Object: o, Name: name})
		}
	}

	return entries
}

// readRecords reads the records of entries.
func (a Archive) readRecords(ctx context.Context, entries []Entry) error {
	var reading errgroup.Group

	reading.SetLimit(recordsAtOnce)

	for i := range entries {
		reading.Go(func() (err error) {
			entry := &entries[i]

			if ctx.Err() == nil {
				entry.Record, err = a.Recorded(ctx, entry.Key)
			}

			if ctx.Err() != nil {
				return fmt.Errorf("read the snapshot records: %w", context.Cause(ctx))
			}

			if err == nil && !entry.Record.Authentic && len(a.RecordKeys) > 0 {
				entry.Record, err = nil, &UntrustedError{doubt: errNotOurs}
			}

			if err != nil && !errors.Is(err, store.ErrNotFound) {
				entry.RecordErr = err
			}

			return nil
		})
	}

	return reading.Wait()
}

func (a Archive) objects(ctx context.Context) ([]store.Object, error) {
	if err := a.valid(); err != nil {
		return nil, err
	}

	return a.Store.List(ctx, a.folder()+"/"+namePrefix)
}

// Remove deletes a snapshot with the objects stored beside it. It is idempotent. The record goes last: a retention
// does not remove a snapshot without one.
func (a Archive) Remove(ctx context.Context, key string) error {
	if name, ok := ParseKey(key); !ok || name.Mark != a.Mark {
		return fmt.Errorf("%s is not a snapshot of this cluster", key)
	}

	for _, key := range []string{secretsKey(key), key, key + recordSuffix} {
		if err := a.Store.Delete(ctx, key); err != nil {
			return err
		}
	}

	return nil
}

// Confirm asks the store whether it still holds a snapshot as it was recorded, and returns nil, store.ErrNotFound
// or store.ErrDiffers. It does not read the snapshot where the store knows the sums of its objects. Without a
// recorded checksum, it compares only the size.
func (a Archive) Confirm(ctx context.Context, key string, size int64, checksum string) error {
	object, err := a.Store.Head(ctx, key)

	switch {
	case err != nil:
		return err
	case object.Size != size:
		return fmt.Errorf("%w: %s has %d bytes, expected %d", store.ErrDiffers, key, object.Size, size)
	case checksum != "" && object.Checksum != checksum:
		return fmt.Errorf("%w: %s has checksum %q, expected %q", store.ErrDiffers, key, object.Checksum, checksum)
	default:
		return nil
	}
}

// Sweep removes incomplete objects of this cluster that killed runs began before a time, by the store's clock, and
// returns how many. The caller guarantees that no running snapshot of this cluster began before it. Other clusters
// of the folder are left alone.
func (a Archive) Sweep(ctx context.Context, before time.Time) (int, error) {
	if err := a.valid(); err != nil {
		return 0, err
	}

	return a.Store.Sweep(ctx, a.folder()+"/"+namePrefix, func(key string, begun time.Time) bool {
		return begun.Before(before) && markOf(key) == a.Mark
	})
}

// secretsKey is the key of the secrets beside a snapshot.
func secretsKey(key string) string {
	name := strings.LastIndex(key, "/") + 1
	stem, _, _ := strings.Cut(key[name:], ".db")

	return key[:name] + stem + ".secrets.yaml.age"
}
