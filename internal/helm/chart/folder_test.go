package chart

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
)

// folderOf writes a chart as a folder below a new one, and returns its path.
func folderOf(t *testing.T, parent string, c *helmchart.Chart, files map[string]string) string {
	t.Helper()
	if err := chartutil.SaveDir(c, parent); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(parent, c.Name())
	for name, text := range files {
		write(t, filepath.Join(folder, name), text)
	}
	return folder
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// snapshot is everything that can be seen of a folder.
func snapshot(t *testing.T, folder string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		seen[name] = info.Mode().String() + info.ModTime().String()
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(name)
			seen[name] += string(content)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func TestFolderDigest_changesWithFiles(t *testing.T) {
	store := newStore(t, Options{})
	ignored := map[string]string{".helmignore": "*.bak\nsecret/\n", "x.bak": "1", "secret/key": "2", "doc/a.md": "3",
		"doc/b.md": "4"}
	first := folderOf(t, t.TempDir(), simple("web", "1.0.0"), ignored)
	second := folderOf(t, t.TempDir(), simple("web", "1.0.0"), nil)
	// The same files, written in another order, at another time, with other modes, and with other ignored ones.
	ignored["x.bak"] = "other"
	delete(ignored, "secret/key")
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(ignored))) {
		write(t, filepath.Join(second, name), ignored[name])
	}
	digest := func(folder string) string {
		t.Helper()
		pin, err := store.Resolve(t.Context(), Source{Chart: folder})
		if err != nil || pin.Name != "web" || pin.Version != "1.0.0" {
			t.Fatal(pin, err)
		}
		p, err := store.Fetch(t.Context(), Source{Chart: folder})
		installable(t, p, err, "web", "1.0.0")
		if p.Digest != pin.Digest || normalDigest(p.Digest) != p.Digest {
			t.Fatalf("%s, %s", p.Digest, pin.Digest)
		}
		return pin.Digest
	}
	same := digest(first)
	old := time.Now().Add(-time.Hour)
	for name := range snapshot(t, second) {
		if err := errors.Join(os.Chtimes(name, old, old), os.Chmod(name, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	if digest(second) != same {
		t.Error("order, time, mode or ignored files are in the digest")
	}
	seen := map[string]string{same: "as it was"}
	for _, change := range []struct{ what, name, text string }{
		{"content", "doc/a.md", "5"},
		{"new file", "doc/c.md", ""},
		{"moved text", "doc/c.md", "4"},
		{"rules", ".helmignore", "*.bak\n"},
		{"values", "values.yaml", "replicas: 2\n"},
		{"name", "doc/d.md", ""},
	} {
		if change.what == "name" {
			if err := os.Rename(filepath.Join(second, "doc", "c.md"), filepath.Join(second, "doc", "d.md")); err != nil {
				t.Fatal(err)
			}
			change.text = "4"
		}
		write(t, filepath.Join(second, change.name), change.text)
		now := digest(second)
		if before, ok := seen[now]; ok {
			t.Errorf("%s: the digest is that of %s", change.what, before)
		}
		seen[now] = change.what
	}
}

func TestFolderDigest_namesAndContents(t *testing.T) {
	seen := map[string]bool{}
	for _, files := range [][]*loader.BufferedFile{
		{{Name: "a", Data: []byte("bc")}},
		{{Name: "ab", Data: []byte("c")}},
		{{Name: "a", Data: []byte("b")}, {Name: "c"}},
		{{Name: "a"}, {Name: "b", Data: []byte("c")}},
	} {
		seen[digestOfFiles(files)] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d digests of 4 different folders", len(seen))
	}
}

func TestFolder_relativePath(t *testing.T) {
	store := newStore(t, Options{})
	parent := t.TempDir()
	folderOf(t, parent, simple("web", "1.0.0"), nil)
	write(t, filepath.Join(parent, "web.tgz"), string(packed(t, simple("web", "1.0.0"))))
	t.Chdir(parent)
	for _, path := range []string{"web", "./web", "web/", "web.tgz", "./web.tgz", filepath.Join(parent, "web.tgz")} {
		p, err := store.Fetch(t.Context(), Source{Chart: path, Version: "~1.0"})
		installable(t, p, err, "web", "1.0.0")
	}
	for _, path := range []string{"webby", "./webby", "/nowhere/at/all"} {
		_, err := store.Fetch(t.Context(), Source{Chart: path})
		if !errors.Is(err, ErrNoChart) {
			t.Error(err)
		}
		texts(t, err, path)
	}
	for _, path := range []string{"web", "web.tgz"} {
		_, err := store.Resolve(t.Context(), Source{Chart: path, Version: "2.0.0"})
		if !errors.Is(err, ErrNoVersion) {
			t.Error(err)
		}
		texts(t, err, "1.0.0", "2.0.0")
	}
}

func TestFetch_filesThatAreNoCharts(t *testing.T) {
	store := newStore(t, Options{})
	parent := t.TempDir()
	write(t, filepath.Join(parent, "text.tgz"), "hello")
	write(t, filepath.Join(parent, "empty", "README"), "")
	broken := folderOf(t, parent, simple("broken", "1.0.0"), map[string]string{"values.yaml": "a: [\n"})
	for path, wanted := range map[string]string{
		filepath.Join(parent, "text.tgz"): "not gzip",
		filepath.Join(parent, "empty"):    "Chart.yaml",
		broken:                            "values.yaml",
	} {
		_, err := store.Resolve(t.Context(), Source{Chart: path})
		if !errors.Is(err, ErrDamaged) {
			t.Error(err)
		}
		texts(t, err, path, wanted)
	}
	store.packageLimit = 3
	if _, err := store.Fetch(t.Context(), Source{Chart: filepath.Join(parent, "text.tgz")}); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

func TestFetch_libraryAndDeprecated(t *testing.T) {
	s, store := serve(t), newStore(t, Options{})
	library, old := simple("lib", "1.0.0"), simple("old", "1.0.0")
	library.Metadata.Type, library.Templates = "library", nil
	old.Metadata.Deprecated, old.Metadata.Type = true, "application"
	s.publish(t, "", map[string][]byte{"lib-1.0.0.tgz": packed(t, library), "old-1.0.0.tgz": packed(t, old)})
	_, err := store.Fetch(t.Context(), s.of("lib", ""))
	if !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	texts(t, err, "library charts cannot be installed")
	_, err = store.Resolve(t.Context(), Source{Chart: folderOf(t, t.TempDir(), library, nil)})
	texts(t, err, "library charts cannot be installed")
	p, err := store.Fetch(t.Context(), s.of("old", ""))
	if err != nil || !p.Deprecated {
		t.Errorf("%v %v", p, err)
	}
	// As a dependency a library is what it is for.
	user := dependsOn(&helmchart.Dependency{Name: "lib", Version: "1.0.0", Repository: s.URL})(simple("user", "1.0.0"))
	p, err = store.Fetch(t.Context(),
		Source{Chart: folderOf(t, t.TempDir(), user, nil), UpdateDependencies: true, CA: s.CA, PassCredentials: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := subchartsOf(t, p); !slices.Equal(got, []string{"lib 1.0.0"}) {
		t.Error(got)
	}
}

// Helm's actions change the chart that they get; the next one gets a fresh one.
func TestPackage_chartIsReadAgain(t *testing.T) {
	s, store := serve(t), newStore(t, Options{})
	s.publish(t, "", map[string][]byte{"web-1.0.0.tgz": packed(t, simple("web", "1.0.0"))})
	folder := folderOf(t, t.TempDir(), simple("web", "1.0.0"), nil)
	for _, from := range []Source{s.of("web", ""), {Chart: folder}} {
		p, err := store.Fetch(t.Context(), from)
		installable(t, p, err, "web", "1.0.0")
		first, err := p.Chart()
		if err != nil {
			t.Fatal(err)
		}
		first.Values["replicas"] = 7
		first.Metadata.Name = "spoiled"
		first.Templates = nil
		second, err := p.Chart()
		if err != nil || second.Name() != "web" || len(second.Templates) != 1 ||
			strings.Contains(string(second.Templates[0].Data), "7") {
			t.Errorf("%v %v", second, err)
		}
		if second.Values["replicas"] == 7 {
			t.Error("values are shared")
		}
	}
}
