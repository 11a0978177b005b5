package backup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// errStopped ends a stream whose reader has gone without an error of its own.
var errStopped = errors.New("nobody reads the snapshot any more")

// ended is how the writing side of a pipe ended.
type ended struct {
	err error
	// alone is true when nothing had told it to.
	alone bool
}

// piped runs a writer and a reader side by side. The reader meets io.EOF only after the
// writer has ended without an error, so what it stores by then was verified. Both have ended
// when piped returns.
func piped[T any](ctx context.Context, write func(context.Context, io.Writer) error, read func(io.Reader) (T, error)) (T, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	from, to := io.Pipe()
	writer := make(chan ended, 1)

	go func() {
		err := write(ctx, to)
		writer <- ended{err: err, alone: ctx.Err() == nil}

		_ = to.CloseWithError(err) // never fails (io.PipeWriter)
	}()

	result, err := read(from)

	_ = from.CloseWithError(cmp.Or(err, errStopped)) // never fails (io.PipeReader)

	cancel()

	wrote := <-writer

	switch {
	case err == nil:
		return result, wrote.err
	case wrote.err == nil, errors.Is(err, wrote.err), errors.Is(wrote.err, err), !wrote.alone:
		return result, err // of which the writer's is the cause or the consequence
	default:
		return result, errors.Join(wrote.err, err)
	}
}

// scratch is a file that goes when it is closed, or with the process.
type scratch struct {
	*os.File
	named bool
}

// unnamed makes a file that has lost its name already. Windows does not let go of the name
// of an open file; there it goes on closing.
func unnamed(folder string) (*scratch, error) {
	file, err := os.CreateTemp(folder, "talosop-etcd-snapshot-*")
	if err != nil {
		return nil, fmt.Errorf("make a file for the check of the database: %w", err)
	}

	return &scratch{File: file, named: os.Remove(file.Name()) != nil}, nil
}

// Close removes the file.
func (s *scratch) Close() error {
	err := s.File.Close()
	if s.named {
		err = errors.Join(err, os.Remove(s.Name()))
	}

	return err
}

// stream writes a sealed snapshot to a store and a plain one to a file, and returns once
// both the stream and the database in the file are verified. The sealing is finished only
// then; what was written before does not open.
func stream(ctx context.Context, copied *scratch, sealing Sealing, source Source, to io.Writer) (Database, error) {
	sealed, err := sealing.seal(to)
	if err != nil {
		return Database{}, err
	}

	v := newVerifier()

	if err := source(ctx, io.MultiWriter(v, copied, sealed)); err != nil {
		return Database{}, err
	}

	if err := v.verify(); err != nil {
		return Database{}, err
	}

	database, err := inspect(ctx, copied, v.size)
	if err != nil {
		return Database{}, err
	}

	return database, sealed.Close()
}

// Fetch writes the snapshot of a key, opened and verified, to a new file that only its owner
// can read, and returns what it holds. The file has the sum at its end, as Talos wants it
// (Talos 1.13, EtcdRecover). It need not be one of this cluster or of this package: what
// `talosctl etcd snapshot` wrote is one, too. After an error there is no file. What does not
// bear out is ErrIncomplete or ErrDamaged, an encrypted one without the right key ErrLocked,
// and one that differs from its record store.ErrDiffers.
func (a Archive) Fetch(ctx context.Context, key string, keys Keys, to string) (_ Database, err error) {
	want, err := a.Recorded(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return Database{}, err
	}

	stored, err := a.Store.Open(ctx, key, store.Range{})
	if err != nil {
		return Database{}, err
	}

	defer func() { err = errors.Join(err, stored.Close()) }()

	file, err := os.OpenFile(filepath.Clean(to), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return Database{}, fmt.Errorf("make a file for the snapshot: %w", err)
	}

	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(to))
		}
	}()

	err = want.fill(file, stored, keys)
	if err = errors.Join(err, file.Close()); err != nil {
		return Database{}, fmt.Errorf("open %s: %w", key, err)
	}

	database, err := Inspect(ctx, to)
	if err != nil {
		return Database{}, fmt.Errorf("open %s: %w", key, err)
	}

	return database, nil
}

// fill writes the snapshot of a stored stream and compares the stream with its record, if
// there is one.
func (r *Record) fill(to io.Writer, stored io.Reader, keys Keys) (err error) {
	sum := sha256.New()
	stored = io.TeeReader(stored, sum)

	opened, err := keys.unseal(stored)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, opened.Close()) }()

	v := newVerifier()
	if _, err := io.Copy(io.MultiWriter(to, v), opened); err != nil {
		return fmt.Errorf("%w: %w", ErrIncomplete, err)
	}

	if err := v.verify(); err != nil {
		return err
	}

	// What follows the end of the stream is read, so that the sum covers it.
	if _, err := io.Copy(io.Discard, stored); err != nil {
		return err
	}

	if got := hex.EncodeToString(sum.Sum(nil)); r != nil && got != r.SHA256 {
		return fmt.Errorf("%w: SHA-256 %s instead of %s", store.ErrDiffers, got, r.SHA256)
	}

	return nil
}
