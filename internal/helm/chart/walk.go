package chart

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/ignore"
)

// folder reads the files of a chart as Helm's loader does (Helm 3.21, chart/loader/directory.go, LoadDir): behind links
// too, without those that .helmignore names. Helm reads all of them before they can be counted.
func (r *room) folder(name string) ([]*loader.BufferedFile, error) {
	rules := ignore.Empty()
	switch read, err := ignore.ParseFile(filepath.Join(name, ignore.HelmIgnore)); {
	case err == nil:
		rules = read
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	rules.AddDefaults()
	w := folderWalk{room: r, root: name, rules: rules}
	err := w.walk("")
	return w.files, err
}

// folderWalk is one reading of a folder.
type folderWalk struct {
	room  *room
	root  string
	rules *ignore.Rules
	files []*loader.BufferedFile
}

// walk reads what is at a path below the root, which is empty for the root.
func (w *folderWalk) walk(at string) error {
	name := filepath.Join(w.root, filepath.FromSlash(at))
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if at != "" && w.rules.Ignore(at, info) {
		return nil
	}
	if !info.IsDir() {
		return w.file(at, name, info)
	}
	// A link may lead back to a folder above it.
	if err := w.room.take(at, 0); err != nil {
		return err
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := w.walk(path.Join(at, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (w *folderWalk) file(at, name string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", at)
	}
	content, err := readAtMost(name, loader.MaxDecompressedFileSize)
	if err != nil {
		return err
	}
	if err := w.room.take(at, int64(len(content))); err != nil {
		return err
	}
	if err := w.room.inspect(at, bufio.NewReader(bytes.NewReader(content)), 0); err != nil {
		return err
	}
	w.files = append(w.files, &loader.BufferedFile{Name: at, Data: bytes.TrimPrefix(content, byteOrderMark)})
	return nil
}

// readAtMost reads a file, and one byte of those beyond a limit: some files are longer than they say, as below /proc.
func readAtMost(name string, limit int64) (content []byte, err error) {
	file, err := os.Open(name) //nolint:gosec // the path is the user's
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return io.ReadAll(io.LimitReader(file, limit+1))
}
