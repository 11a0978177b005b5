package chart

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// fromFile reads a package of this computer.
func (s *Store) fromFile(ctx context.Context, from Source) (download, error) {
	if ctx.Err() != nil {
		return download{}, ctx.Err()
	}
	read := func(name string) ([]byte, error) {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, newError("no such file: "+name, nil, errGone)
		}
		if err == nil && !info.Mode().IsRegular() {
			return nil, newError(name+" is not a regular file", nil, ErrNoChart)
		}
		if err != nil {
			return nil, newError("read the file", err, ErrNoChart)
		}
		body, err := readAtMost(name, s.packageLimit)
		if err != nil {
			return nil, newError("read the file", err, ErrNoChart)
		}
		if int64(len(body)) > s.packageLimit {
			return nil, tooLarge(name, s.packageLimit)
		}
		return body, nil
	}
	archive, err := read(from.Chart)
	if errors.Is(err, errGone) {
		return download{}, newError("no such package: "+from.Chart, nil, ErrNoChart)
	}
	if err != nil {
		return download{}, err
	}
	return download{
		from: from.Chart, name: filepath.Base(from.Chart), archive: archive,
		provenance: func(context.Context) ([]byte, error) { return read(from.Chart + ".prov") },
	}, nil
}

// folder reads an unpacked chart, with its dependencies.
func (s *Store) folder(ctx context.Context, from Source) (*Package, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if from.Verify {
		return nil, newError(from.Chart+" is a folder, and only packages can be verified with provenance files", nil,
			ErrDamaged)
	}
	left := newRoom()
	read, files, err := readFolder(from.Chart, left)
	if err != nil {
		return nil, err
	}
	if from.UpdateDependencies {
		read, files, err = s.complete(ctx, from, read, files, left)
		if err != nil {
			return nil, err
		}
	}
	opened, err := describe(from.Chart, read, from.Version)
	if err != nil {
		return nil, err
	}
	if err := action.CheckDependencies(read, read.Metadata.Dependencies); err != nil {
		advice := " (set dependency_update to download them, or run helm dependency build)"
		if from.UpdateDependencies {
			advice = ""
		}
		return nil, newError(from.Chart+" has missing dependencies"+advice, err, ErrDamaged)
	}
	opened.files, opened.Digest = files, digestOfFiles(files)
	return opened, ctx.Err()
}

// readFolder reads the files that helm would take, after .helmignore.
func readFolder(name string, left *room) (*helmchart.Chart, []*loader.BufferedFile, error) {
	if _, err := os.Stat(name); err != nil {
		return nil, nil, newError("no such folder: "+name, err, ErrNoChart)
	}
	files, err := left.folder(name)
	if err != nil {
		if err := damaged(name, err); errors.Is(err, ErrTooLarge) {
			return nil, nil, err
		}
		return nil, nil, newError(name+" is not a chart that Helm can load", err, ErrDamaged)
	}
	read, err := loader.LoadFiles(files)
	if err != nil {
		return nil, nil, newError(name+" is not a chart that Helm can load", err, ErrDamaged)
	}
	return read, files, nil
}

// digestOfFiles is over names and contents alone, in the order of the names.
func digestOfFiles(files []*loader.BufferedFile) string {
	sorted := slices.SortedFunc(slices.Values(files),
		func(a, b *loader.BufferedFile) int { return strings.Compare(a.Name, b.Name) })
	sum := sha256.New()
	write := func(part []byte) {
		// With their lengths, parts cannot be mistaken for others that are cut differently.
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		sum.Write(length[:])
		sum.Write(part)
	}
	for _, file := range sorted {
		write([]byte(file.Name))
		write(file.Data)
	}
	return digestPrefix + hex.EncodeToString(sum.Sum(nil))
}
