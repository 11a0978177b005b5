package backup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

var taken = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// snapshot is a database of zeros and its sum.
func snapshot() []byte {
	database := bytes.Repeat([]byte{0}, 4096)
	sum := sha256.Sum256(database)

	return append(database, sum[:]...)
}

// inPieces streams bytes in pieces of that size.
func inPieces(data []byte, size int) func(context.Context, io.Writer) error {
	return func(_ context.Context, to io.Writer) error {
		for piece := range slices.Chunk(data, size) {
			if _, err := to.Write(piece); err != nil {
				return err
			}
		}

		return nil
	}
}

func TestKeep_writesAWholeFile(t *testing.T) {
	t.Parallel()

	for _, size := range []int{1, 31, 32, 33, 4096, 5000} {
		folder := backup.Folder{Path: filepath.Join(t.TempDir(), "made", "here"), Cluster: "prod"}

		path, err := folder.Keep(t.Context(), taken, inPieces(snapshot(), size))
		if err != nil {
			t.Fatal(err)
		}

		if want := filepath.Join(folder.Path, "prod-etcd-20260102T150405Z.snapshot"); path != want {
			t.Errorf("path %s, want %s", path, want)
		}

		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 || info.Size() != int64(len(snapshot())) {
			t.Errorf("file %v (%v), want %d bytes for its owner alone", info, err, len(snapshot()))
		}

		left(t, folder.Path, 1)

		if _, err := folder.Keep(t.Context(), taken, inPieces(snapshot(), size)); !wait.IsPermanent(err) ||
			!errors.Is(err, os.ErrExist) {
			t.Errorf("a second snapshot of the same second: %v, want one that replaces nothing", err)
		}

		left(t, folder.Path, 1)
	}
}

// left checks how many files a folder has.
func left(t *testing.T, path string, want int) {
	t.Helper()

	entries, err := os.ReadDir(path)
	if err != nil || len(entries) != want {
		t.Errorf("the folder holds %v (%v), want %d files", entries, err, want)
	}
}

func TestKeep_leavesNothingThatIsNotWhole(t *testing.T) {
	t.Parallel()

	flipped := func(at int) []byte {
		data := snapshot()
		data[at] ^= 1

		return data
	}

	for name, data := range map[string][]byte{
		"empty": nil, "cut in the database": snapshot()[:4000], "cut at a page": snapshot()[:1024],
		"cut in the sum": snapshot()[:4100],
		"without a sum":  snapshot()[:4096], "first byte": flipped(0), "last page": flipped(4095), "sum": flipped(4100),
		"a byte more": append(snapshot(), 0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			folder := backup.Folder{Path: t.TempDir(), Cluster: "prod"}
			if _, err := folder.Keep(t.Context(), taken, inPieces(data, 100)); !errors.Is(err, backup.ErrIncomplete) ||
				wait.IsPermanent(err) {
				t.Errorf("error %v, want that it is not complete, and may be taken again", err)
			}

			left(t, folder.Path, 0)
		})
	}
}

func TestKeep_leavesNothingWhenTheStreamFails(t *testing.T) {
	t.Parallel()

	folder := backup.Folder{Path: t.TempDir(), Cluster: "prod"}
	broken := errors.New("the member went away")

	if _, err := folder.Keep(t.Context(), taken, func(context.Context, io.Writer) error { return broken }); !errors.Is(err,
		broken) || wait.IsPermanent(err) {
		t.Errorf("error %v, want that of the stream", err)
	}

	left(t, folder.Path, 0)

	occupied := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(occupied, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	if _, err := (backup.Folder{Path: occupied}).Keep(t.Context(), taken,
		inPieces(snapshot(), 100)); !wait.IsPermanent(err) {
		t.Errorf("error %v, want a permanent one about the folder", err)
	}
}
