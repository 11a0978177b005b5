// Package file keeps backups as files of a folder, readable by their owner alone: a database
// of etcd holds every Secret of its cluster.
package file

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
	"github.com/talosop/terraform-provider-talosop/internal/safefile"
)

var _ store.Store = Store{}

// Store keeps each object as a file of that path below a folder.
type Store struct {
	// Path of the folder; it is made when it is missing.
	Path string
}

// Put writes a file that appears under its name once it is whole and on the disk. The file
// system must have hard links.
func (s Store) Put(ctx context.Context, key string, body io.Reader) (object store.Object, err error) {
	to, err := s.path(key)
	if err != nil {
		return store.Object{}, err
	}

	file, err := safefile.Create(to)
	if err != nil {
		return store.Object{}, fmt.Errorf("create a file for the backup: %w", err)
	}

	defer func() { err = errors.Join(err, file.Discard()) }()

	sum := sha256.New()

	size, err := io.Copy(io.MultiWriter(file, sum), &bounded{ctx: ctx, from: body})
	if err != nil {
		return store.Object{}, fmt.Errorf("write %s: %w", key, err)
	}

	if err := file.Place(); errors.Is(err, fs.ErrExist) {
		return store.Object{}, fmt.Errorf("create %s: %w: %w", key, store.ErrExists, err)
	} else if err != nil {
		return store.Object{}, fmt.Errorf("create %s: %w", key, err)
	}

	object, err = s.confirmed(ctx, key, size, hex.EncodeToString(sum.Sum(nil)))
	if err != nil {
		return store.Object{}, errors.Join(err, removed(to))
	}

	return object, nil
}

// confirmed reads the stored file and compares it with what was written.
func (s Store) confirmed(ctx context.Context, key string, size int64, sum string) (store.Object, error) {
	object, err := s.Head(ctx, key)
	if err != nil {
		return store.Object{}, err
	}

	if object.Size != size || object.Checksum != sum {
		return store.Object{}, fmt.Errorf("%w: %s has %d bytes and checksum %s, expected %d and %s", store.ErrDiffers, key,
			object.Size, object.Checksum, size, sum)
	}

	return object, nil
}

// Head reads the whole file to know its sum, which is its SHA-256.
func (s Store) Head(ctx context.Context, key string) (object store.Object, err error) {
	path, err := s.path(key)
	if err != nil {
		return store.Object{}, err
	}

	file, err := opened(path)
	if err != nil {
		return store.Object{}, err
	}

	defer func() { err = errors.Join(err, file.Close()) }()

	info, err := file.Stat()
	if err != nil {
		return store.Object{}, err
	}

	sum := sha256.New()

	size, err := io.Copy(sum, &bounded{ctx: ctx, from: file})
	if err != nil {
		return store.Object{}, fmt.Errorf("read %s: %w", key, err)
	}

	return store.Object{Key: key, Size: size, Checksum: hex.EncodeToString(sum.Sum(nil)), Modified: info.ModTime()}, nil
}

// Open reads a file.
func (s Store) Open(ctx context.Context, key string, part store.Range) (io.ReadCloser, error) {
	path, err := s.path(key)
	if err != nil {
		return nil, err
	}

	file, err := opened(path)
	if err != nil {
		return nil, err
	}

	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}

	length := info.Size() - part.Offset
	if part.Length > 0 {
		length = min(length, part.Length)
	}

	return struct {
		io.Reader
		io.Closer
	}{&bounded{ctx: ctx, from: io.NewSectionReader(file, part.Offset, length)}, file}, nil
}

// List walks the folder of the prefix; one that does not exist holds nothing.
func (s Store) List(ctx context.Context, prefix string) ([]store.Object, error) {
	var objects []store.Object

	err := s.walk(ctx, prefix, func(key string, info fs.FileInfo) error {
		if strings.HasPrefix(key, prefix) && !strings.HasPrefix(info.Name(), safefile.Partial) {
			objects = append(objects, store.Object{Key: key, Size: info.Size(), Modified: info.ModTime()})
		}

		return store.Full(prefix, len(objects))
	})

	slices.SortFunc(objects, func(a, b store.Object) int { return strings.Compare(a.Key, b.Key) })

	return objects, err
}

// Delete removes a file. Its folders stay.
func (s Store) Delete(_ context.Context, key string) error {
	path, err := s.path(key)
	if err != nil {
		return err
	}

	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete %s: %w", key, err)
	}

	return nil
}

// Sweep removes files that have no name yet.
func (s Store) Sweep(ctx context.Context, prefix string, meant func(key string, begun time.Time) bool) (int, error) {
	swept := 0

	err := s.walk(ctx, prefix, func(path string, info fs.FileInfo) error {
		key, ok := unfinished(path)
		if !ok || !strings.HasPrefix(key, prefix) || !meant(key, info.ModTime()) {
			return nil
		}

		swept++

		return removed(filepath.Join(s.Path, filepath.FromSlash(path)))
	})

	return swept, err
}

// unfinished is the key of a file that is still written, or ok is false.
func unfinished(name string) (key string, ok bool) {
	folder, base := path.Split(name)

	rest, ok := strings.CutPrefix(base, safefile.Partial)
	if end := strings.LastIndex(rest, "-"); end >= 0 {
		rest = rest[:end]
	}

	return folder + rest, ok
}

// walk calls f with each file of the prefix's folder that may have a key of the prefix, and
// some more. What is beside that folder is not looked at: it may belong to others, and not be
// readable. The folder may be a link to another one.
func (s Store) walk(ctx context.Context, prefix string, f func(key string, info fs.FileInfo) error) error {
	folder := path.Dir(prefix)
	if !fs.ValidPath(folder) {
		return fmt.Errorf("%q is not a valid prefix of backup keys", prefix)
	}

	return fs.WalkDir(os.DirFS(filepath.Join(s.Path, filepath.FromSlash(folder))), ".",
		func(name string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}

			if err = errors.Join(err, ctx.Err()); err != nil {
				return fmt.Errorf("list backups: %w", err)
			}

			key := path.Join(folder, name)

			if entry.IsDir() && name != "." && !strings.HasPrefix(key+"/", prefix) {
				return fs.SkipDir
			}

			if !entry.Type().IsRegular() {
				return nil
			}

			info, err := entry.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			} else if err != nil {
				return fmt.Errorf("list backups: %w", err)
			}

			return f(key, info)
		})
}

// path of a key. A key must not leave the folder.
func (s Store) path(key string) (string, error) {
	if !fs.ValidPath(key) || key == "." {
		return "", fmt.Errorf("%q is not a valid backup key", key)
	}

	return filepath.Join(s.Path, filepath.FromSlash(key)), nil
}

// bounded reads until its context ends.
type bounded struct {
	ctx  context.Context //nolint:containedctx // an io.Reader has no other way to be canceled, and it lives for one call
	from io.Reader
}

func (b *bounded) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, context.Cause(b.ctx)
	}

	return b.from.Read(p)
}

// opened is a file to read, or ErrNotFound.
func opened(path string) (*os.File, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", store.ErrNotFound, err)
	}

	return file, err
}

// removed takes a file away, also after the run was interrupted.
func removed(path string) error {
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove the incomplete backup: %w", err)
	}

	return nil
}
