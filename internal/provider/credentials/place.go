package credentials

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/safefile"
)

// place is where a file of credentials is.
type place struct {
	path string
	// own reports whether content contains only credentials of the cluster, which can be issued again at any time.
	own func(content []byte) bool
}

// errForeign says that the content of a path must not be lost.
var (
	errForeign = errors.New("contains something other than credentials of this cluster")
	errOthers  = errors.New("contains credentials that this resource did not write")
	errNoFile  = fmt.Errorf("is not a regular file, and %w", errForeign)
)

// read returns the content of the file. fs.ErrNotExist means that there is none, errNoFile that it is something
// else.
func (p place) read(_ context.Context) ([]byte, fs.FileMode, error) {
	info, err := os.Lstat(p.path)
	if err != nil {
		return nil, 0, err
	}

	if !info.Mode().IsRegular() {
		return nil, 0, errNoFile
	}

	content, err := os.ReadFile(p.path)

	return content, info.Mode().Perm(), err
}

// check returns errForeign when the path contains more than credentials of the cluster. An empty file is not
// foreign.
func (p place) check(ctx context.Context) error {
	content, _, err := p.read(ctx)

	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(bytes.TrimSpace(content)) > 0 && !p.own(content):
		return errForeign
	default:
		return nil
	}
}

// write replaces the file with content, unless the existing file is foreign. The file belongs to its owner alone,
// and is complete at any time; missing folders are created for the owner alone. It returns the mode that the file
// system gave it.
func (p place) write(ctx context.Context, content []byte) (mode fs.FileMode, err error) {
	if err := p.check(ctx); err != nil {
		return 0, err
	}

	file, err := safefile.Create(p.path)
	if err != nil {
		return 0, err
	}

	defer func() { err = errors.Join(err, file.Discard()) }()

	if _, err := file.Write(content); err != nil {
		return 0, err
	}

	return file.Replace()
}

// remove deletes the file with the credentials of a fingerprint, unless another file has taken its place: another
// resource may have written there by now. It accepts a missing file.
func (p place) remove(ctx context.Context, fingerprint string) error {
	if err := p.check(ctx); err != nil {
		return err
	}

	content, _, err := p.read(ctx)
	if err == nil && len(bytes.TrimSpace(content)) > 0 && pki.ConfigFingerprint(content) != fingerprint {
		return errOthers
	}

	if err := os.Remove(p.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	return nil
}

// opened reports whether a file became readable to others than its owner after it was written. Windows and some file
// systems keep no such permissions: a file there has others from the start.
func opened(mode, written fs.FileMode) bool {
	return runtime.GOOS != "windows" && mode&0o077&^written != 0
}
