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
	// own reports whether content is nothing but credentials of the cluster, which can be made again at any time.
	own func(content []byte) bool
}

// errForeign is that what is at a path must not be lost.
var (
	errForeign = errors.New("holds something else than credentials of this cluster")
	errOthers  = errors.New("holds credentials that this resource did not write")
	errNoFile  = fmt.Errorf("is no regular file, and %w", errForeign)
)

// read returns the content of the file. fs.ErrNotExist is that there is none, errNoFile that it is something else.
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

// check returns an errForeign when what is at the path is not the cluster's alone. An empty file is nobody's.
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

// write puts content in the place of what is there, unless that is foreign. The file is its owner's alone, and whole at
// any time; folders that are missing are made for their owner alone. It returns the mode that the file system gave it.
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

// remove deletes the file with the credentials of a fingerprint, unless something else has taken its place: another
// resource may have written there by now. It is content with none.
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

// opened is whether somebody else than the owner may read a file since it was written. Windows keeps no such bits, and
// neither do some file systems: a file there has others from the beginning.
func opened(mode, written fs.FileMode) bool {
	return runtime.GOOS != "windows" && mode&0o077&^written != 0
}
