package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// loadArchive is Helm's loader for packages of others. Helm bounds what comes out of one archive, and each package in
// charts/ anew, to any depth, and counts no files (Helm 3.21, chart/loader/archive.go, LoadArchiveFiles): a few KB
// are enough to take all of the memory.
func loadArchive(from string, archive []byte) (*helmchart.Chart, error) {
	left := &room{bytes: largestUnpacked, files: mostFiles}
	if err := left.unpack(archive, 0); errors.Is(err, errFull) {
		return nil, newError(from+": "+err.Error(), nil, ErrTooLarge, ErrDamaged)
	}
	// Whatever else is wrong with it, Helm says.
	return loader.LoadArchive(bytes.NewReader(archive))
}

var errFull = errors.New("the package unpacks to more than any real chart has")

// room is what is left for a package.
type room struct {
	bytes int64
	files int
}

// deepest is how many packages may be within each other.
const deepest = 8

func (r *room) unpack(archive []byte, depth int) error {
	if depth > deepest {
		return fmt.Errorf("%w: packages within packages, more than %d deep", errFull, deepest)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return err
	}
	// Also headers and what lies between files take time.
	files := tar.NewReader(io.LimitReader(unzipped, r.bytes+int64(r.files)*headerSize))
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.take(header); err != nil {
			return err
		}
		if !isPackage(header.Name) {
			continue
		}
		inner, err := io.ReadAll(files)
		if err != nil {
			return err
		}
		if err := r.unpack(inner, depth+1); errors.Is(err, errFull) {
			return err
		}
	}
}

// headerSize is what a file takes in an archive beside its content, about: its header, and what fills its last block.
const headerSize = 4 << 10

func (r *room) take(header *tar.Header) error {
	if r.files--; r.files < 0 {
		return fmt.Errorf("%w: more than %d files", errFull, mostFiles)
	}
	if header.Size > loader.MaxDecompressedFileSize {
		return fmt.Errorf("%w: %s has %d bytes, and a file may have %d", errFull, header.Name, header.Size,
			loader.MaxDecompressedFileSize)
	}
	if r.bytes -= header.Size; r.bytes < 0 {
		return fmt.Errorf("%w: more than %d bytes", errFull, largestUnpacked)
	}
	return nil
}

// isPackage says whether Helm unpacks a file, which is a dependency then.
func isPackage(name string) bool {
	name = strings.ReplaceAll(name, `\`, "/")
	return path.Ext(name) == ".tgz" && strings.Contains(name, "/"+chartsFolder)
}
