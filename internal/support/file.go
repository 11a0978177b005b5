package support

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/safefile"
)

// ErrExists is that there is something at the path of a bundle already.
var ErrExists = errors.New("the file already exists")

// Vacant is nil where a bundle can be written without taking the place of anything, or may.
func Vacant(_ context.Context, path string, overwrite bool) error {
	info, err := os.Lstat(path)

	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w and is not a regular file", ErrExists)
	case !overwrite:
		return ErrExists
	default:
		return nil
	}
}

// archive is a ZIP file that appears under its name once it is whole. It is safe for concurrent use.
type archive struct {
	redactor redactor

	mu   sync.Mutex
	file *safefile.Pending
	zip  *zip.Writer
	made time.Time
	// names are those of the files in it.
	names map[string]bool
}

// create begins a bundle beside the path that it will have, for its owner alone.
func create(_ context.Context, path string) (*archive, error) {
	file, err := safefile.Create(path)
	if err != nil {
		return nil, err
	}

	return &archive{file: file, zip: zip.NewWriter(file), made: time.Now(), names: map[string]bool{}}, nil
}

// errName is that a file cannot have its name in a bundle.
var errName = errors.New("excluded from the bundle")

// write adds a file without the secrets of its content. folder is ours, and name may be that of a machine or an object
// of Kubernetes, which could lead anywhere where the bundle is unpacked: such a name is errName.
func (a *archive) write(folder, name string, content []byte) error {
	name, err := safefile.Name(name)
	if err != nil {
		return fmt.Errorf("%w: %w", errName, err)
	}

	whole, err := safefile.Name(folder + "/" + name)
	if err != nil {
		return fmt.Errorf("%w: %w", errName, err)
	}

	content = a.redactor.redact(content)

	a.mu.Lock()
	defer a.mu.Unlock()

	if a.names[whole] {
		return fmt.Errorf("%w: duplicate file name %q", errName, whole)
	}

	into, err := a.zip.CreateHeader(&zip.FileHeader{Name: whole, Method: zip.Deflate, Modified: a.made})
	if err != nil {
		return err
	}

	a.names[whole] = true
	_, err = into.Write(content)

	return err
}

// commit gives the file its name.
func (a *archive) commit(ctx context.Context, path string, overwrite bool) error {
	if err := a.zip.Close(); err != nil {
		return err
	}

	if err := Vacant(ctx, path, overwrite); err != nil {
		return err
	}

	if overwrite {
		_, err := a.file.Replace()

		return err
	}

	if err := a.file.Place(); errors.Is(err, fs.ErrExist) {
		return ErrExists
	} else if err == nil {
		return nil
	}

	// A file system without hard links.
	_, err := a.file.Replace()

	return err
}

// discard removes the temporary file.
func (a *archive) discard(context.Context) error { return a.file.Discard() }
