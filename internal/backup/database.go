package backup

import "errors"

// ErrDamaged is a database whose pages do not fit together.
var ErrDamaged = errors.New("the snapshot database is corrupt")

// Database is the content of a snapshot, with the fields of `etcdutl snapshot status`.
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

// isRevision is true for a key of etcd's: 8 bytes, '_', 8 bytes, and 't' for a deletion
// (etcd 3.6, mvcc/revision.go).
func isRevision(key []byte) bool {
	return (len(key) == 17 || len(key) == 18) && key[8] == '_'
}
