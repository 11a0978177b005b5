package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// stored is a file of an archive, with the name as it is stored.
type stored struct {
	name    string
	content []byte
}

func archiveOf(t *testing.T, entries ...stored) []byte {
	t.Helper()
	out := &bytes.Buffer{}
	zipped := gzip.NewWriter(out)
	archive := tar.NewWriter(zipped)
	for _, e := range entries {
		if err := archive.WriteHeader(&tar.Header{Name: e.name, Mode: 0o600, Size: int64(len(e.content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func chartYAML(folder string) stored {
	return stored{folder + "/Chart.yaml", []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")}
}

// allocated is how many bytes of heap a call takes in all.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A package within a package counts, whatever it is called, wherever it is and whatever is in front of it. Of each
// archive here 60 MiB come out, and there are four.
func TestPackage_unpackedSizeWhateverTheName(t *testing.T) {
	few := map[string]int{}
	for n := range 15 {
		few["files/"+fmt.Sprint(n)] = 4 << 20
	}
	inner := bomb(t, few)
	marked := append([]byte("\xef\xbb\xbf"), inner...)
	names := []string{
		"a/charts/x%d.tgz", "a/charts/x%d.tgz/.", "a/charts/./x%d.tgz", "a/charts//x%d.tgz", "a/./charts/x%d.tgz",
		"a/y/../charts/x%d.tgz", `a\charts\x%d.tgz`, `a\charts/x%d.tgz`, "a/charts/x%d.tgz/./.", "a/charts/sub/charts/x%d.tgz",
		"a/charts/sub/charts/x%d.tgz/.", "a/files/x%d.tgz", "a/charts/x%d.TGZ", "a/charts/x%d",
	}
	for i, name := range names {
		for what, content := range map[string][]byte{"plain": inner, "byte order mark": marked} {
			entries := []stored{chartYAML("a"), {"a/charts/sub/Chart.yaml", chartYAML("sub").content}}
			for n := range 4 {
				entries = append(entries, stored{fmt.Sprintf(name, n), content})
			}
			outer := archiveOf(t, entries...)
			for range i % 3 {
				outer = archiveOf(t, chartYAML("a"), stored{"a/charts/y.tgz/.", outer})
			}
			var err error
			heap := allocated(func() { _, err = loadArchive("web.tgz", outer, newRoom()) })
			if !errors.Is(err, ErrTooLarge) || heap > 64<<20 {
				t.Errorf("%s, %s, %d deep: %d MiB of heap, %v", name, what, i%3, heap>>20, err)
			}
		}
	}
}

// What Helm would unpack and cannot read is an error, and no chart.
func TestPackage_unreadableInside(t *testing.T) {
	whole := archiveOf(t, chartYAML("x"))
	for name, inner := range map[string][]byte{
		"no archive": []byte("hello"), "empty": {}, "cut off": whole[:len(whole)/2], "no tar": zippedOf(t, "hello"),
	} {
		for _, file := range []string{"a/charts/x.tgz", "a/charts/x.tgz/."} {
			if _, err := loadArchive("web.tgz", archiveOf(t, chartYAML("a"), stored{file, inner}), newRoom()); err == nil {
				t.Errorf("%s as %s: no error", name, file)
			}
		}
	}
	// Other compressed files are only files.
	if _, err := loadArchive("web.tgz", archiveOf(t, chartYAML("a"), stored{"a/files/x.gz", zippedOf(t, "hello")}),
		newRoom()); err != nil {
		t.Error(err)
	}
}

func zippedOf(t *testing.T, text string) []byte {
	t.Helper()
	out := &bytes.Buffer{}
	zipped := gzip.NewWriter(out)
	if _, err := zipped.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A chart in a folder may have packages too, and links to them.
func TestFolder_unpackedSize(t *testing.T) {
	few := map[string]int{}
	for n := range 15 {
		few["files/"+fmt.Sprint(n)] = 4 << 20
	}
	inner := bomb(t, few)
	for name, fill := range map[string]func(folder string) error{
		"packages": func(folder string) error {
			return errors.Join(os.WriteFile(filepath.Join(folder, "charts", "x.tgz"), inner, 0o600),
				os.WriteFile(filepath.Join(folder, "charts", "y.tgz"), inner, 0o600))
		},
		"links to one": func(folder string) error {
			return errors.Join(os.WriteFile(filepath.Join(folder, "charts", "x.tgz"), inner, 0o600),
				os.Symlink("x.tgz", filepath.Join(folder, "charts", "y.tgz")))
		},
		"large files": func(folder string) (err error) {
			for n := range 21 {
				err = errors.Join(err, os.WriteFile(filepath.Join(folder, fmt.Sprint(n)), make([]byte, 5<<20), 0o600))
			}
			return err
		},
	} {
		folder := t.TempDir()
		if err := errors.Join(os.Mkdir(filepath.Join(folder, "charts"), 0o700),
			os.WriteFile(filepath.Join(folder, "Chart.yaml"), chartYAML("a").content, 0o600), fill(folder)); err != nil {
			t.Fatal(err)
		}
		_, err := newStore(t, Options{}).Fetch(t.Context(), Source{Chart: folder})
		if !errors.Is(err, ErrTooLarge) || !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A folder that links to itself has an end.
func TestFolder_withinItself(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "Chart.yaml"), string(chartYAML("a").content))
	if err := os.Symlink(".", filepath.Join(folder, "charts")); err != nil {
		t.Fatal(err)
	}
	if _, err := newStore(t, Options{}).Fetch(t.Context(), Source{Chart: folder}); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// YAML that Helm reads of a chart may repeat itself without bounds.
func TestPackage_aliases(t *testing.T) {
	text := []byte("a: &a " + strings.Repeat("x", 20_000) + "\nb: [" + strings.Repeat("*a, ", 10_000) + "]\n")
	for _, name := range []string{
		"a/values.yaml", "a/values.yaml/.", `a\values.yaml`, "a/Chart.lock", "a/requirements.yaml", "a/charts/sub/values.yaml",
		"a/crds/one.yaml",
	} {
		archive := archiveOf(t, chartYAML("a"), stored{"a/charts/sub/Chart.yaml", chartYAML("sub").content}, stored{name, text})
		for _, outer := range [][]byte{archive, archiveOf(t, chartYAML("b"), stored{"b/charts/x.tgz", archive})} {
			var err error
			heap := allocated(func() { _, err = loadArchive("web.tgz", outer, newRoom()) })
			if !errors.Is(err, ErrTooLarge) || heap > 64<<20 {
				t.Errorf("%s: %d MiB of heap, %v", name, heap>>20, err)
			}
		}
	}
	folder := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(folder, "Chart.yaml"), chartYAML("a").content, 0o600),
		os.WriteFile(filepath.Join(folder, "values.yaml"), text, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := newStore(t, Options{}).Fetch(t.Context(), Source{Chart: folder}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("in a folder: %v", err)
	}
	if _, err := readIndex(t.Context(), append([]byte("apiVersion: v1\nentries: {}\n"), text...)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("in an index: %v", err)
	}
}
