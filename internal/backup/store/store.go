// Package store is what the stores of backups have in common. A store holds whole objects
// under keys and never replaces one: an object is there with all its bytes, or not at all.
// It knows nothing of etcd; internal/backup decides what is stored.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

var (
	// ErrNotFound is a key without an object.
	ErrNotFound = errors.New("object not found")
	// ErrDenied is what the caller may not do; that may hide that there is no such object.
	ErrDenied = errors.New("access denied")
	// ErrExists is a key that has an object already; it was not touched.
	ErrExists = errors.New("the object already exists")
	// ErrDiffers is an object that differs from what was written.
	ErrDiffers = errors.New("the stored object differs from what was written")
	// ErrTooLarge is an object, a listing or an answer that is larger than any valid one. A client with write
	// access to a store, or a server in its place, must not decide how much memory, disk and time reading costs.
	ErrTooLarge = errors.New("limit exceeded")
)

// MostObjects are how many objects a listing has at most. An hourly backup with its record and its secrets makes 26,280
// in a year.
const MostObjects = 100_000

// Full is the error of a listing that has so many objects of a prefix, or nil.
func Full(prefix string, objects int) error {
	if objects <= MostObjects {
		return nil
	}

	return fmt.Errorf("%w: more than %d objects below %s; remove those that are not backups", ErrTooLarge,
		MostObjects, prefix)
}

// Object is what a store reports about an object.
type Object struct {
	Key  string
	Size int64 // bytes
	// Checksum is the store's own sum over the stored bytes, comparable between answers of
	// one store alone. A listing leaves it empty, and some S3 servers know none.
	Checksum string
	// Modified is when the object was stored, by the store's clock.
	Modified time.Time
}

// Range is a part of an object in bytes; the zero value is the whole. Length 0 reaches to
// the end.
type Range struct{ Offset, Length int64 }

// Store keeps objects. Keys are paths with slashes, without a leading one and without dot
// segments. All methods may be called side by side.
type Store interface {
	// Put stores what body gives until io.EOF. It reports success once the store has
	// confirmed size and checksum. After an error, that of body or of ctx included, nothing
	// of the body is left, or the error says what is. A taken key is ErrExists. Two calls
	// must not share a key at the same time. An error of body is found by errors.Is.
	Put(ctx context.Context, key string, body io.Reader) (Object, error)
	// Head describes one object, or returns ErrNotFound.
	Head(ctx context.Context, key string) (Object, error)
	// Open reads an object or a part of it, or ErrNotFound, or ErrDenied where the store knows
	// of rights. A reading that ends early ends
	// with an error, never with io.EOF.
	Open(ctx context.Context, key string, part Range) (io.ReadCloser, error)
	// List describes all objects whose keys begin with prefix, sorted by key; more than MostObjects are ErrTooLarge.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Delete removes an object. It is idempotent: a missing one is removed.
	Delete(ctx context.Context, key string) error
	// Sweep removes leftovers of killed calls of Put for keys that begin with prefix, and returns how many. meant
	// gets the key and the time when the call began. It must be false for a Put that still runs.
	Sweep(ctx context.Context, prefix string, meant func(key string, begun time.Time) bool) (int, error)
}
