package safefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/safefile"
)

func must(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()

	content, err := os.ReadFile(name)
	must(t, err)

	return string(content)
}

func names(t *testing.T, folder string) []string {
	t.Helper()

	entries, err := os.ReadDir(folder)
	must(t, err)

	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}

	return all
}

// place writes a file through one of the two ways to name it.
func place(t *testing.T, name string, replace bool) error {
	t.Helper()

	p, err := safefile.Create(name)
	must(t, err)

	defer func() { must(t, p.Discard()) }()

	_, err = p.WriteString("new")
	must(t, err)

	if !replace {
		return p.Place()
	}

	_, err = p.Replace()

	return err
}

func TestPending_followsNoLinks(t *testing.T) {
	t.Parallel()

	for _, replace := range []bool{false, true} {
		folder := t.TempDir()
		victim, link := filepath.Join(folder, "victim"), filepath.Join(folder, "link")
		must(t, os.WriteFile(victim, []byte("old"), 0o600))
		must(t, os.Symlink(victim, link))

		err := place(t, link, replace)
		if replace && !errors.Is(err, safefile.ErrIrregular) || !replace && !errors.Is(err, fs.ErrExist) {
			t.Errorf("replace %v: %v", replace, err)
		}

		if read(t, victim) != "old" || !slices.Equal(names(t, folder), []string{"link", "victim"}) {
			t.Errorf("replace %v: the victim is %q, files %v", replace, read(t, victim), names(t, folder))
		}
	}
}

// What could not be placed can still replace: some file systems have no hard links.
func TestPending_replacesAfterPlace(t *testing.T) {
	t.Parallel()

	name := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(name, []byte("old"), 0o600))

	p, err := safefile.Create(name)
	must(t, err)

	defer func() { must(t, p.Discard()) }()

	_, err = p.WriteString("new")
	must(t, err)

	if err := p.Place(); !errors.Is(err, fs.ErrExist) || read(t, name) != "old" {
		t.Errorf("placed: %v, %q", err, read(t, name))
	}

	if mode, err := p.Replace(); err != nil || mode != 0o600 || read(t, name) != "new" {
		t.Errorf("replaced: %v, %v, %q", mode, err, read(t, name))
	}
}

func TestPending_appearsWhole(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	name := filepath.Join(folder, "below", "file")

	must(t, place(t, name, false))

	if err := place(t, name, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("placed twice: %v", err)
	}

	must(t, os.Chmod(name, 0o644))
	must(t, place(t, name, true))

	info, err := os.Stat(name)
	must(t, err)

	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 || read(t, name) != "new" {
		t.Errorf("mode %v, %q", info.Mode(), read(t, name))
	}

	if left := names(t, filepath.Dir(name)); !slices.Equal(left, []string{"file"}) {
		t.Errorf("left %v", left)
	}
}

func TestAppend(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	victim := filepath.Join(folder, "victim")
	must(t, os.WriteFile(victim, []byte("old"), 0o600))
	must(t, os.Symlink(victim, filepath.Join(folder, "link")))
	must(t, os.Symlink(filepath.Join(folder, "nothing"), filepath.Join(folder, "dangling")))
	must(t, os.Mkdir(filepath.Join(folder, "folder"), 0o700))

	for _, name := range []string{"link", "dangling", "folder"} {
		name = filepath.Join(folder, name)
		if err := safefile.CheckAppend(name); !errors.Is(err, safefile.ErrIrregular) {
			t.Errorf("%s: the check says %v", name, err)
		}

		if file, err := safefile.Append(name); !errors.Is(err, safefile.ErrIrregular) {
			t.Errorf("%s: opened %v, %v", name, file, err)
		}
	}

	if left := names(t, folder); read(t, victim) != "old" || slices.Contains(left, "nothing") {
		t.Errorf("the victim is %q, files %v", read(t, victim), left)
	}

	for _, mode := range []fs.FileMode{0o600, 0o644, 0o666} {
		name := filepath.Join(folder, "log")
		must(t, os.WriteFile(name, []byte("first"), mode))
		must(t, os.Chmod(name, mode))

		file, err := safefile.Append(name)
		must(t, err)
		_, err = file.WriteString(" second")
		must(t, errors.Join(err, file.Close()))

		info, err := os.Stat(name)
		must(t, err)

		if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 || read(t, name) != "first second" {
			t.Errorf("%v: mode %v, %q", mode, info.Mode(), read(t, name))
		}

		must(t, os.Remove(name))
	}
}

func TestName(t *testing.T) {
	t.Parallel()

	for given, want := range map[string]string{
		"dmesg.log": "dmesg.log", "a/b.log": "a/b.log", "./a//b": "a/b", "kube-system/pod:container.log": "kube-system/pod:container.log",
		"..a/b..": "..a/b..", "a/...": "a/...",
	} {
		if got, err := safefile.Name(given); err != nil || got != want {
			t.Errorf("%q: %q, %v", given, got, err)
		}
	}

	for _, given := range []string{
		"", ".", "..", "/", "/etc/passwd", "../a", "a/../../b", "a/..", "a/../b", "../../../../home/user/.profile", `..\a`, `a\..\b`,
		`C:\a`, "C:/a", "c:", "a\x00b", "a\nb", "a/\x1b[2J", "\xff",
	} {
		if got, err := safefile.Name(given); err == nil {
			t.Errorf("%q is %q", given, got)
		}
	}
}
