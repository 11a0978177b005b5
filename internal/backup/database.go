package backup

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"os"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"
)

// ErrDamaged is a database whose pages do not fit together.
var ErrDamaged = errors.New("the database of the snapshot is damaged")

// Database is what a snapshot holds, in the words of `etcdutl snapshot status`.
type Database struct {
	// Revision is etcd's when the snapshot was taken.
	Revision int64 `json:"revision"`
	// Hash is CRC-32C over names, keys and values of all buckets.
	Hash uint32 `json:"hash"`
	// Size in bytes, without the sum at the end of a snapshot.
	Size int64 `json:"size"`
	// Version of etcd's storage, such as 3.6; empty before.
	Version string `json:"version,omitempty"`
}

// lockTimeout is how long a database may be locked by another process.
const lockTimeout = 10 * time.Second

// Names of etcd's buckets and of a key in one (etcd 3.6, server/storage/schema).
var (
	keyBucket  = []byte("key")
	metaBucket = []byte("meta")
	versionKey = []byte("storageVersion")
)

// Inspect checks every page of the database in a file, a snapshot with or without its sum at
// the end, and reads what it holds, as `etcdutl snapshot status` does. What is wrong with
// the database is ErrDamaged. The file is mapped into memory page by page, not read as a
// whole, and not changed.
func Inspect(ctx context.Context, path string) (database Database, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return Database{}, err
	}

	// A damaged page may point anywhere. bbolt takes that for a bug of its caller and panics, or reads memory that is not there.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))

	defer func() {
		if r := recover(); r != nil {
			database, err = Database{}, fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()

	// Loading the list of free pages here lets its faults be caught; Check would load it in a goroutine of its own.
	db, err := bolt.Open(path, 0o400, &bolt.Options{ReadOnly: true, PreLoadFreelist: true, Timeout: lockTimeout})
	if err != nil {
		return Database{}, fmt.Errorf("%w: open: %w", ErrDamaged, err)
	}

	defer func() { err = errors.Join(err, db.Close()) }()

	err = db.View(func(tx *bolt.Tx) error {
		database.Size = tx.Size()
		if surplus := info.Size() - database.Size; surplus != 0 && surplus != sumSize {
			return fmt.Errorf("%w: it has %d bytes and says %d", ErrDamaged, info.Size(), database.Size)
		}

		// Reading everything visits every page that Check will follow, in this goroutine.
		if err := database.read(ctx, tx); err != nil {
			return err
		}

		return checked(tx)
	})

	return database, err
}

// checked is bbolt's own check of all pages.
func checked(tx *bolt.Tx) error {
	var first error

	count := 0

	for err := range tx.Check() {
		if count++; first == nil {
			first = err
		}
	}

	if first != nil {
		return fmt.Errorf("%w: %d faults, the first: %w", ErrDamaged, count, first)
	}

	return nil
}

// read walks all buckets in their order.
func (d *Database) read(ctx context.Context, tx *bolt.Tx) error {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))

	err := tx.ForEach(func(name []byte, bucket *bolt.Bucket) error {
		sum.Write(name)

		return bucket.ForEach(d.reader(ctx, name, sum))
	})
	if err != nil {
		return err
	}

	if tx.Bucket(keyBucket) == nil {
		return fmt.Errorf("%w: it has no bucket of etcd's keys", ErrDamaged)
	}

	if meta := tx.Bucket(metaBucket); meta != nil {
		d.Version = string(meta.Get(versionKey))
	}

	d.Hash = sum.Sum32()

	return nil
}

// reader follows the entries of one bucket.
func (d *Database) reader(ctx context.Context, name []byte, sum hash.Hash32) func(key, value []byte) error {
	keys := bytes.Equal(name, keyBucket)

	return func(key, value []byte) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}

		sum.Write(key)
		sum.Write(value)

		if !keys {
			return nil
		}

		// The key of an entry is its revision: 8 bytes, '_', 8 bytes, and 't' for a deletion (etcd 3.6, mvcc/revision.go).
		if len(key) != 17 && len(key) != 18 || key[8] != '_' {
			return fmt.Errorf("%w: %x is no revision of etcd", ErrDamaged, key)
		}

		d.Revision = int64(binary.BigEndian.Uint64(key)) //nolint:gosec // etcd's revisions are positive int64

		return nil
	}
}
