package backup

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"os"
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
	// Version of etcd's storage, such as 3.6.0; empty before 3.6.
	Version string `json:"version,omitempty"`
}

// Names of etcd's buckets and of a key in one (etcd 3.6, server/storage/schema).
var (
	keyBucket  = []byte("key")
	metaBucket = []byte("meta")
	versionKey = []byte("storageVersion")
)

// Inspect checks every page of the database in a file, a snapshot with or without its sum at
// the end, and reads what it holds, as `etcdutl snapshot status` does: all pages are read,
// are what they say to be, in order, and used once. What is wrong with the database is
// ErrDamaged. It reads a page at a time and changes nothing.
func Inspect(ctx context.Context, path string) (database Database, err error) {
	file, err := os.Open(path)
	if err != nil {
		return Database{}, err
	}

	defer func() { err = errors.Join(err, file.Close()) }()

	info, err := file.Stat()
	if err != nil {
		return Database{}, err
	}

	return inspect(ctx, file, info.Size())
}

func inspect(ctx context.Context, file io.ReaderAt, length int64) (database Database, err error) {
	p, m, err := openPages(ctx, file, length)
	if err != nil {
		return Database{}, err
	}

	database.Size = int64(p.high) * p.size

	if err := database.read(p, m); err != nil {
		return Database{}, err
	}

	return database, p.rest(m)
}

// read walks all buckets in their order.
func (d *Database) read(p *pages, m meta) error {
	var (
		sum  = crc32.New(crc32.MakeTable(crc32.Castagnoli))
		keys bool
	)

	err := p.tree(m.root, bounds{}, 0, func(bucket entry, depth int) error {
		if !bucket.bucket {
			return damaged("%q is no bucket", bucket.key)
		}

		keys = keys || bytes.Equal(bucket.key, keyBucket)
		sum.Write(bucket.key)

		return p.bucket(bucket, depth, func(e entry) error { return d.follow(bucket.key, e, sum) })
	})
	if err != nil {
		return err
	}

	if !keys {
		return damaged("it has no bucket of etcd's keys")
	}

	d.Hash = sum.Sum32()

	return nil
}

// follow takes an entry of a bucket into account.
func (d *Database) follow(bucket []byte, e entry, sum hash.Hash32) error {
	if e.bucket {
		return damaged("%q of %q is a bucket", e.key, bucket)
	}

	sum.Write(e.key)
	sum.Write(e.value)

	switch {
	case bytes.Equal(bucket, keyBucket):
		// The key is a revision: 8 bytes, '_', 8 bytes, and 't' for a deletion (etcd 3.6, mvcc/revision.go).
		if len(e.key) != 17 && len(e.key) != 18 || e.key[8] != '_' {
			return damaged("%x is no revision of etcd", e.key)
		}

		d.Revision = int64(binary.BigEndian.Uint64(e.key))
	case bytes.Equal(bucket, metaBucket) && bytes.Equal(e.key, versionKey):
		d.Version = string(e.value)
	}

	return nil
}
