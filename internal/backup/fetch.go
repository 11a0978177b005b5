package backup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

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

// Size is the number of bytes that a Reader returns.
func (s *Snapshot) Size() int64 { return s.size }

// Close removes the opened snapshot.
func (s *Snapshot) Close() error { return s.file.Close() }

// Fetch opens and verifies the snapshot of a key. It need not be one of this package: a file of `talosctl etcd
// snapshot` is valid, too, and the archive needs no cluster for it. A snapshot of a cluster with another mark is
// ErrForeign and is not read, unless the archive has no mark. A snapshot that fails verification is ErrIncomplete
// or ErrDamaged, and an encrypted one without the right key is ErrLocked. One that should be encrypted and is not
// is ErrPlain. One that differs from its record or the given sum is store.ErrDiffers. One without any proof is an
// UntrustedError.
//
// A client with write access to the store can write a snapshot, its record and all that can be computed without a
// secret. So the proof is one of: the record, authenticated with a key of the cluster; Keys.SHA256; or
// Keys.Passphrase, unless the name is one of this package, which has a record.
func (a Archive) Fetch(ctx context.Context, key string, keys Keys) (_ *Snapshot, err error) {
	o, err := a.opening(ctx, key, keys)
	if err != nil {
		return nil, err
	}

	stored, err := a.Store.Open(ctx, key, store.Range{})
	if err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, stored.Close()) }()

	snapshot, err := o.open(ctx, stored, a.Scratch)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", key, err)
	}

	return snapshot, nil
}

// admit refuses a snapshot of another cluster.
func (a Archive) admit(key string, record *Record) error {
	if a.Mark == "" {
		return nil
	}

	return Belongs(key, record, a.Mark)
}

// errNotOurs is a record that matches but that any client can have written.
var errNotOurs = errors.New("its record is unsigned or signed with another key")

// ErrUntrusted is the class of UntrustedError.
var ErrUntrusted = errors.New("the snapshot is not signed with a key of this cluster")

// UntrustedError is a snapshot that nothing vouches for. It was not unpacked.
type UntrustedError struct {
	// SHA256 of the stored bytes, which proves them when the caller gives it.
	SHA256 string
	// doubt is why.
	doubt error
}

func (u *UntrustedError) Error() string { return fmt.Sprintf("%s: %s", ErrUntrusted, u.doubt) }

// Unwrap returns ErrUntrusted, and the problem of the record.
func (u *UntrustedError) Unwrap() []error { return []error{ErrUntrusted, u.doubt} }

// mostUnpacked in bytes is twice what etcd suggests at most for its database (8 GiB, etcd 3.6, "System limits"): etcd
// only warns of a larger quota, and a database grows over it by the writes of that moment. It is for snapshots of which
// no authentic record says how large they are.
const mostUnpacked = 16 << 30

// opening is how a stored snapshot is opened.
type opening struct {
	keys Keys
	// record is the one that a key of the cluster wrote, or nil, and doubt why there is none.
	record *Record
	doubt  error
	// denied is set when the store does not let the record be read.
	denied error
	// encrypted is the sign that it is encrypted; empty for none.
	encrypted string
	// recordable is whether a record belongs beside it.
	recordable bool
}

// opening finds out what vouches for the snapshot of a key.
func (a Archive) opening(ctx context.Context, key string, keys Keys) (opening, error) {
	o := opening{keys: keys}

	record, err := a.Recorded(ctx, key)

	switch {
	case err == nil && record.Authentic:
		o.record = record
	case err == nil:
		o.doubt = errNotOurs
	case errors.Is(err, store.ErrNotFound):
		o.doubt = errors.New("it has no record; talosop_etcd_backup stores one with each snapshot")
	case errors.Is(err, store.ErrDenied):
		o.doubt, o.denied = errors.New("the store denies access to its record, or it has none"), err
	case errors.Is(err, ErrRecord):
		o.doubt = err
	default:
		return o, err
	}

	// A record without proof is not believed when a given sum proves the snapshot.
	if keys.SHA256 != "" {
		record = o.record
	}

	if err := a.admit(key, record); err != nil {
		return o, err
	}

	name, ours := ParseKey(key)
	o.recordable = ours

	switch given := keys.given(); {
	case given != "":
		o.encrypted = "decryption keys were given (" + given + ")"
	case keys.SHA256 != "" && o.record == nil:
	case ours && name.Encrypted || path.Ext(key) == ".age":
		o.encrypted = "its name says that it is encrypted"
	case record != nil && record.Encryption != "":
		o.encrypted = "its record says that it is encrypted"
	}

	return o, nil
}

// proven reports whether there is proof for a snapshot that was opened so. The sums are compared at the end.
func (o opening) proven(opened unsealed) bool {
	return o.record != nil || o.keys.SHA256 != "" || opened.secret && !o.recordable
}

// bounds are how many bytes are read, and how many come out of them.
func (o opening) bounds() (stored, unpacked int64) {
	if o.record != nil {
		return o.record.Size, o.record.Database.Size + sumSize
	}

	return mostUnpacked, mostUnpacked
}

// open reads a stored snapshot into a file without a name and compares it with its record,
// if there is one.
func (o opening) open(ctx context.Context, stored io.Reader, folder string) (_ *Snapshot, err error) {
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

	size, err := o.fill(io.MultiWriter(opened, pages), stored)
	if err != nil {
		return nil, err
	}

	database, err := pages.database(ctx)
	if err != nil {
		return nil, err
	}

	if o.record != nil && database != o.record.Database {
		return nil, fmt.Errorf("%w: its database is %+v, expected %+v", store.ErrDiffers, database, o.record.Database)
	}

	return &Snapshot{Database: database, Record: o.record, RecordErr: o.denied, file: opened, size: size}, nil
}

// fill writes the snapshot of a stored stream and returns how long it is.
func (o opening) fill(to io.Writer, stored io.Reader) (_ int64, err error) {
	var (
		mostStored, most = o.bounds()
		sum              = sha256.New()
		bounded          = store.AtMost(stored, mostStored, o.tooLarge("it is larger than", mostStored))
		from             = &source{Reader: io.TeeReader(bounded, sum)}
		v                = newVerifier()
		into             = &sink{Writer: io.MultiWriter(to, v)}
	)

	opened, err := o.keys.unseal(from, o.encrypted)
	if err != nil {
		return 0, err
	}

	defer func() { err = errors.Join(err, opened.Close()) }()

	if !o.proven(opened) {
		if _, err := io.Copy(io.Discard, from); err != nil {
			return 0, err
		}

		return 0, &UntrustedError{SHA256: hex.EncodeToString(sum.Sum(nil)), doubt: o.doubt}
	}

	unpacked := store.AtMost(opened, most, o.tooLarge("it decompresses to more than", most))

	if _, err := io.Copy(into, unpacked); cmp.Or(from.err, into.err) != nil {
		return 0, cmp.Or(from.err, into.err)
	} else if errors.Is(err, store.ErrTooLarge) {
		return 0, err
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

	return v.size, o.compare(hex.EncodeToString(sum.Sum(nil)))
}

// tooLarge is the error of a stream that has more bytes than it may.
func (o opening) tooLarge(what string, most int64) error {
	if o.record != nil {
		return fmt.Errorf("%w: %w: %s the recorded %d bytes", store.ErrTooLarge, store.ErrDiffers, what, most)
	}

	return fmt.Errorf("%w: %s %d bytes, twice the maximum that etcd suggests; restore it with `talosctl bootstrap "+
		"--recover-from`", store.ErrTooLarge, what, most)
}

// ErrOtherSum is a snapshot with another SHA-256 than the one that was given.
var ErrOtherSum = errors.New("the SHA-256 checksum does not match the given one")

// compare reports whether the stored bytes are the recorded and wanted ones.
func (o opening) compare(got string) error {
	if o.record != nil && got != o.record.SHA256 {
		return fmt.Errorf("%w: SHA-256 is %s, expected %s", store.ErrDiffers, got, o.record.SHA256)
	}

	if given := o.keys.SHA256; given != "" && !strings.EqualFold(got, given) {
		return fmt.Errorf("%w: the snapshot has %s", ErrOtherSum, got)
	}

	return nil
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
