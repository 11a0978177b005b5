package chart

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
)

// loadArchive is Helm's loader for packages of others. Helm bounds what comes out of one archive, and each package in
// charts/ again, to any depth, and counts no files (Helm 3.21, chart/loader/archive.go, LoadArchiveFiles): a few KB
// are enough to take all of the memory.
func loadArchive(from string, archive []byte, left *room) (*helmchart.Chart, error) {
	if err := left.unpack(archive, 0); err != nil {
		return nil, damaged(from, err)
	}
	return loader.LoadArchive(bytes.NewReader(archive))
}

// damaged is ErrTooLarge about a chart that is larger than allowed, and any other error as it is.
func damaged(from string, err error) error {
	if errors.Is(err, errFull) || errors.Is(err, expansion.ErrTooLarge) {
		return newError(from+": "+err.Error(), nil, ErrTooLarge, ErrDamaged)
	}
	return err
}

var errFull = errors.New("the unpacked chart is too large")

// room is what is left for a chart, with all packages within it.
type room struct {
	bytes, files int64
	// stream is for what gzip makes: also headers and what lies between files take time.
	stream *expansion.Budget
}

func newRoom() *room {
	return &room{bytes: largestUnpacked, files: mostFiles,
		stream: expansion.NewBudget(largestUnpacked + mostFiles*headerSize)}
}

const (
	// deepest is how many packages may be within each other.
	deepest = 8
	// headerSize is about what a file takes in an archive beside its content: its header, and the padding of its
	// last block.
	headerSize = 4 << 10
)

// unpack counts the unpacked content of an archive.
func (r *room) unpack(archive []byte, depth int) error {
	if depth > deepest {
		return fmt.Errorf("%w: packages are nested more than %d levels deep", errFull, deepest)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return err
	}
	files := tar.NewReader(r.stream.Reader(unzipped))
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.take(header.Name, header.Size); err != nil {
			return err
		}
		if err := r.inspect(header.Name, bufio.NewReader(files), depth); err != nil {
			return err
		}
	}
}

// take counts a file.
func (r *room) take(name string, size int64) error {
	if r.files--; r.files < 0 {
		return fmt.Errorf("%w: more than %d files", errFull, mostFiles)
	}
	if size > loader.MaxDecompressedFileSize {
		return fmt.Errorf("%w: %s has %d bytes, the limit of a file is %d", errFull, name, size,
			loader.MaxDecompressedFileSize)
	}
	if r.bytes -= size; r.bytes < 0 {
		return fmt.Errorf("%w: more than %d bytes", errFull, largestUnpacked)
	}
	return nil
}

var (
	byteOrderMark = []byte("\xef\xbb\xbf")
	gzipMagic     = []byte{0x1f, 0x8b}
)

// inspect counts what Helm makes of a file. Which files it unpacks depends on their names after it cleaned them, and it
// takes a byte order mark away first (Helm 3.21, chart/loader/load.go): here every file counts that gzip can open.
func (r *room) inspect(name string, file *bufio.Reader, depth int) error {
	head, err := file.Peek(len(byteOrderMark) + len(gzipMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	isPackage, parsed := bytes.HasPrefix(bytes.TrimPrefix(head, byteOrderMark), gzipMagic), isParsed(name)
	if !isPackage && !parsed {
		_, err := io.Copy(io.Discard, file)
		return err
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	content = bytes.TrimPrefix(content, byteOrderMark)
	if isPackage {
		// Content that is no package counts until that shows. If Helm unpacks it, Helm reports the problem.
		if err := r.unpack(content, depth+1); errors.Is(err, errFull) || errors.Is(err, expansion.ErrTooLarge) {
			return err
		}
	}
	if parsed {
		if err := expansion.CheckYAML(content); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// isParsed reports whether Helm parses a file before it renders anything, wherever in a chart it is.
func isParsed(name string) bool {
	name = path.Clean(strings.ReplaceAll(name, `\`, "/"))
	switch path.Base(name) {
	case "Chart.yaml", "Chart.lock", "values.yaml", "requirements.yaml", "requirements.lock":
		return true
	}
	return strings.Contains("/"+name, "/crds/")
}
