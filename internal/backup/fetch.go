package backup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// Snapshot is a snapshot that was opened and verified. It is in a file without a name, so
// that a killed run leaves no database in clear text behind.
type Snapshot struct {
	Database Database
	// Record is nil when the snapshot has none.
	Record *Record
	// RecordErr is why the record, if there is one, could not be read: a store.ErrDenied.
	RecordErr error

	file *scratch
	size int64
}

// Reader gives the database and the sum after it, as Talos wants it (Talos 1.13,
// EtcdRecover), from the beginning. Any number may be read, side by side, until Close.
func (s *Snapshot) Reader() io.Reader { return io.NewSectionReader(s.file, 0, s.size) }

// Size of what a Reader gives in bytes.
func (s *Snapshot) Size() int64 { return s.size }

// Close removes the opened snapshot.
func (s *Snapshot) Close() error { return s.file.Close() }

// Fetch opens and verifies the snapshot of a key. It need not be one of this package: what
// `talosctl etcd snapshot` wrote is one, too. The archive needs no cluster for it. One of a
// cluster with another mark is ErrForeign, unless the archive has no mark, and is not read.
// What does not bear out is ErrIncomplete or ErrDamaged, an encrypted one without the right
// key ErrLocked, one that differs from its record store.ErrDiffers, and one whose record
// does not bear out ErrRecord: without its record it may be fetched nevertheless, and so it is
// where the record alone may not be read.
func (a Archive) Fetch(ctx context.Context, key string, keys Keys) (_ *Snapshot, err error) {
	record, unrecorded := a.Recorded(ctx, key)
	if unrecorded != nil && !Unrecorded(unrecorded) {
		return nil, unrecorded
	}

	if err := a.admit(key, record); err != nil {
		return nil, err
	}

	stored, err := a.Store.Open(ctx, key, store.Range{})
	if err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, stored.Close()) }()

	snapshot, err := record.open(ctx, stored, keys, a.Scratch)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", key, err)
	}

	if !errors.Is(unrecorded, store.ErrNotFound) {
		snapshot.RecordErr = unrecorded
	}

	return snapshot, nil
}

// FetchFile is Fetch for a file of this machine: one of `talosctl etcd snapshot`, or one that
// was copied out of a store, whose record may lie beside it. Of the archive it needs the mark
// and the scratch folder.
func (a Archive) FetchFile(ctx context.Context, path string, keys Keys) (*Snapshot, error) {
	a.Store = file.Store{Path: filepath.Dir(path)}

	return a.Fetch(ctx, filepath.Base(path), keys)
}

// admit refuses what is of another cluster.
func (a Archive) admit(key string, record *Record) error {
	if a.Mark == "" {
		return nil
	}

	return Belongs(key, record, a.Mark)
}

// open reads a stored snapshot into a file without a name and compares it with its record,
// if there is one.
func (r *Record) open(ctx context.Context, stored io.Reader, keys Keys, folder string) (_ *Snapshot, err error) {
	pages, err := newScan(folder)
	if err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, pages.Close()) }()

	opened, err := unnamed(folder)
	if err != nil {
		return nil, err
	}

	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close())
		}
	}()

	size, err := r.fill(io.MultiWriter(opened, pages), stored, keys)
	if err != nil {
		return nil, err
	}

	database, err := pages.database(ctx)
	if err != nil {
		return nil, err
	}

	if r != nil && database != r.Database {
		return nil, fmt.Errorf("%w: its database is %+v instead of %+v", store.ErrDiffers, database, r.Database)
	}

	return &Snapshot{Database: database, Record: r, file: opened, size: size}, nil
}

// fill writes the snapshot of a stored stream and returns how long it is.
func (r *Record) fill(to io.Writer, stored io.Reader, keys Keys) (_ int64, err error) {
	var (
		sum  = sha256.New()
		from = &source{Reader: io.TeeReader(stored, sum)}
		v    = newVerifier()
		into = &sink{Writer: io.MultiWriter(to, v)}
	)

	opened, err := keys.unseal(from)
	if err != nil {
		return 0, err
	}

	defer func() { err = errors.Join(err, opened.Close()) }()

	if _, err := io.Copy(into, opened); cmp.Or(from.err, into.err) != nil {
		return 0, cmp.Or(from.err, into.err)
	} else if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrIncomplete, err)
	}

	if err := v.verify(); err != nil {
		return 0, err
	}

	// What follows the end of the stream is read, so that the sum covers it.
	if _, err := io.Copy(io.Discard, from); err != nil {
		return 0, err
	}

	if got := hex.EncodeToString(sum.Sum(nil)); r != nil && got != r.SHA256 {
		return 0, fmt.Errorf("%w: SHA-256 %s instead of %s", store.ErrDiffers, got, r.SHA256)
	}

	return v.size, nil
}

// source and sink remember their own errors, which say nothing against the snapshot between
// them.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}

	return n, err
}

type sink struct {
	io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	s.err = cmp.Or(s.err, err)

	return n, err
}
