// Package safefile writes files that other users and programs cannot redirect or read. A file appears under its
// name once it is complete and on the disk, links at its name are never followed, and only its owner may read it.
// Names from other sources cannot leave their folder.
package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"unicode"
)

// Partial is how the names of files begin that are still written. The name that the file will have and a number follow.
const Partial = ".talosop-partial-"

// ErrIrregular is that something is at a name that is no regular file, such as a link or a device.
var ErrIrregular = errors.New("not a regular file")

// Pending is a file that is being written beside its name. Discard ends it, even after it has its name.
type Pending struct {
	*os.File

	path string
	// finished is that the content is on the disk, in a file of this mode.
	finished bool
	mode     fs.FileMode
}

// Create begins a file. It makes the folder where it is missing, and both for their owner alone.
func Create(name string) (*Pending, error) {
	folder := filepath.Dir(name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder: %w", err)
	}

	// os.CreateTemp opens a new file with mode 0600.
	file, err := os.CreateTemp(folder, Partial+filepath.Base(name)+"-*")
	if err != nil {
		return nil, err
	}

	return &Pending{File: file, path: name}, nil
}

// Replace gives the file its name in place of a regular file, and returns its mode. Anything else at the name is
// ErrIrregular.
func (p *Pending) Replace() (fs.FileMode, error) {
	mode, err := p.finish()
	if err != nil {
		return 0, err
	}

	if _, err := regular(p.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}

	if err := os.Rename(p.Name(), p.path); err != nil {
		return 0, err
	}

	return mode, syncFolder(filepath.Dir(p.path))
}

// Place gives the file its name where nothing is. Otherwise it is fs.ErrExist. The file system must have hard links;
// after an error Replace may be called.
func (p *Pending) Place() error {
	if _, err := p.finish(); err != nil {
		return err
	}

	// A link fails where a rename would replace.
	if err := os.Link(p.Name(), p.path); err != nil {
		return err
	}

	return syncFolder(filepath.Dir(p.path))
}

// finish closes the file once its content is on the disk, and returns its mode.
func (p *Pending) finish() (fs.FileMode, error) {
	if p.finished {
		return p.mode, nil
	}

	info, err := p.Stat()
	if err = errors.Join(err, p.Sync(), p.Close()); err != nil {
		return 0, err
	}

	p.finished, p.mode = true, info.Mode().Perm()

	return p.mode, nil
}

// Discard removes the temporary file. It may be called again.
func (p *Pending) Discard() error {
	closed := p.Close()
	if errors.Is(closed, os.ErrClosed) {
		closed = nil
	}

	removed := os.Remove(p.Name())
	if errors.Is(removed, fs.ErrNotExist) {
		removed = nil
	}

	return errors.Join(closed, removed)
}

// CheckAppend is why Append could not open a file of this name; it changes nothing.
func CheckAppend(name string) error {
	if _, err := regular(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	return nil
}

// Append opens a file to add to its end, and makes it where it is missing. A link, a device or a folder is
// ErrIrregular. A file that others may read or write is its owner's alone from then on.
func Append(name string) (_ *os.File, err error) {
	if err := CheckAppend(name); err != nil {
		return nil, err
	}

	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY|noFollow, 0o600)
	if err != nil {
		return nil, err
	}

	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()

	opened, err := file.Stat()
	if err != nil {
		return nil, err
	}

	// Where the system cannot refuse links, one may have come between the check and the opening.
	named, err := regular(name)
	if err != nil {
		return nil, err
	}

	if !os.SameFile(opened, named) {
		return nil, fmt.Errorf("%s: %w", name, ErrIrregular)
	}

	// Windows has no such bits.
	if runtime.GOOS != "windows" && opened.Mode().Perm()&0o077 != 0 {
		if err := file.Chmod(0o600); err != nil {
			return nil, fmt.Errorf("restrict the file to its owner: %w", err)
		}
	}

	return file, nil
}

// regular is the file at a name, or ErrIrregular, or fs.ErrNotExist.
func regular(name string) (fs.FileInfo, error) {
	info, err := os.Lstat(name)

	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: %w", name, ErrIrregular)
	default:
		return info, nil
	}
}

// drive is how an absolute or relative path of Windows begins.
var drive = regexp.MustCompile(`^[A-Za-z]:([/\\]|$)`)

// Name is a name below a folder, with slashes, as something else gave it, cleaned. Names that could leave the folder on
// any system are an error: an archive is unpacked anywhere.
func Name(given string) (string, error) {
	cleaned := path.Clean(given)

	switch {
	case !fs.ValidPath(cleaned), cleaned == ".", strings.Contains("/"+given+"/", "/../"):
		return "", fmt.Errorf("%q is not a relative path without \"..\"", given)
	case drive.MatchString(cleaned), strings.Contains(cleaned, `\`):
		return "", fmt.Errorf("%q is a Windows path; use slashes and no drive", given)
	case strings.ContainsFunc(cleaned, unicode.IsControl):
		return "", fmt.Errorf("%q contains control characters", given)
	default:
		return cleaned, nil
	}
}

// syncFolder makes a new name last over a loss of power. Windows does not flush a folder that was opened to be read
// (FlushFileBuffers wants a handle for writing); NTFS logs its names. Other file systems that cannot do it, and folders
// that may be written and not read, say so in their errors.
func syncFolder(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}

	folder, err := os.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	} else if err != nil {
		return err
	}

	err = folder.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		err = nil
	}

	return errors.Join(err, folder.Close())
}
