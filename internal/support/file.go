package support

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// ErrExists is that there is something at the path of a bundle already.
var ErrExists = errors.New("there is a file already")

// Vacant is nil where a bundle can be written without taking the place of anything, or may.
func Vacant(_ context.Context, path string, overwrite bool) error {
	info, err := os.Lstat(path)

	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w, and it is no regular one", ErrExists)
	case !overwrite:
		return ErrExists
	default:
		return nil
	}
}

// archive is a ZIP file that appears under its name once it is whole. It is safe for concurrent use.
type archive struct {
	redactor redactor

	mu    sync.Mutex
	file  *os.File
	zip   *zip.Writer
	made  time.Time
	files int
}

// create begins a bundle beside the path that it will have, for its owner alone.
func create(_ context.Context, path string) (*archive, error) {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder: %w", err)
	}

	// Temporary files are made for their owner alone (os.CreateTemp).
	file, err := os.CreateTemp(folder, ".talosop-partial-*")
	if err != nil {
		return nil, err
	}

	return &archive{file: file, zip: zip.NewWriter(file), made: time.Now()}, nil
}

// write adds a file without the secrets of its content.
func (a *archive) write(name string, content []byte) error {
	content = a.redactor.redact(content)

	a.mu.Lock()
	defer a.mu.Unlock()

	into, err := a.zip.CreateHeader(&zip.FileHeader{Name: filepath.ToSlash(name), Method: zip.Deflate, Modified: a.made})
	if err != nil {
		return err
	}

	a.files++
	_, err = into.Write(content)

	return err
}

// commit gives the file its name.
func (a *archive) commit(ctx context.Context, path string, overwrite bool) error {
	if err := errors.Join(a.zip.Close(), a.file.Sync(), a.file.Close()); err != nil {
		return err
	}

	if err := Vacant(ctx, path, overwrite); err != nil {
		return err
	}

	if overwrite {
		return os.Rename(a.file.Name(), path)
	}

	// A link fails where a rename would replace.
	if err := os.Link(a.file.Name(), path); errors.Is(err, fs.ErrExist) {
		return ErrExists
	} else if err == nil {
		return nil
	}

	// A file system without hard links.
	return os.Rename(a.file.Name(), path)
}

// discard removes what is left beside the bundle.
func (a *archive) discard(context.Context) error {
	closed := a.file.Close()
	if errors.Is(closed, os.ErrClosed) {
		closed = nil
	}

	removed := os.Remove(a.file.Name())
	if errors.Is(removed, fs.ErrNotExist) {
		removed = nil
	}

	return errors.Join(closed, removed)
}
