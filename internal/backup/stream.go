package backup

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
)

// errStopped ends a stream whose reader is gone without its own error.
var errStopped = errors.New("the reader of the snapshot stopped")

// ended is how the writing side of a pipe ended.
type ended struct {
	err error
	// alone is true when nothing stopped it.
	alone bool
}

// piped runs a writer and a reader side by side. The reader meets io.EOF only after the
// writer has ended without an error, so what it stores by then was verified. Both have ended
// when piped returns.
func piped[T any](
	ctx context.Context, write func(context.Context, io.Writer) error, read func(io.Reader) (T, error),
) (T, error) {
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
// of an open file; there it continues to close.
func unnamed(folder string) (*scratch, error) {
	file, err := os.CreateTemp(folder, "talosop-etcd-snapshot-*")
	if err != nil {
		return nil, fmt.Errorf("create a temporary file: %w", err)
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

// streamed is what is known of a snapshot that went into a store.
type streamed struct {
	database Database
	objects  map[string]int64
	sum      []byte // SHA-256 of what was written to the store
}

// stream writes a sealed snapshot to a store, and returns once both the stream and the
// database in it are verified. The scan counts objects. The sealing is finished only
// then; what was written before does not open.
func stream(ctx context.Context, s *scan, sealing Sealing, source Source, to io.Writer) (streamed, error) {
	v := newVerifier()

	// What is stored as it is has been hashed by the verifier already.
	sum := v.all
	if sealing.Compression() != "" || sealing.Encryption() != "" {
		stored := sha256.New()
		to, sum = io.MultiWriter(stored, to), func() []byte { return stored.Sum(nil) }
	}

	sealed, err := sealing.seal(to)
	if err != nil {
		return streamed{}, err
	}

	if err := source(ctx, io.MultiWriter(v, s, sealed)); err != nil {
		return streamed{}, err
	}

	if err := v.verify(); err != nil {
		return streamed{}, err
	}

	database, err := s.database(ctx)
	if err != nil {
		return streamed{}, err
	}

	if err := sealed.Close(); err != nil {
		return streamed{}, err
	}

	return streamed{database: database, objects: s.objects.counted(), sum: sum()}, nil
}
