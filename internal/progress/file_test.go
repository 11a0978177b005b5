package progress_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/progress"
)

// No file is written through a link, and the plan reports the link.
func TestFile_followsNoLinks(t *testing.T) {
	t.Parallel()

	for _, linked := range []string{"progress.jsonl", "progress.jsonl.txt", "progress.jsonl.html"} {
		folder := t.TempDir()
		file, victim := filepath.Join(folder, "progress.jsonl"), filepath.Join(folder, "victim")

		if err := os.Symlink(victim, filepath.Join(folder, linked)); err != nil {
			t.Fatal(err)
		}

		for _, exists := range []bool{false, true} {
			if exists {
				if err := os.WriteFile(victim, []byte("old"), 0o600); err != nil {
					t.Fatal(err)
				}
			}

			if err := progress.CheckFile(file); err == nil {
				t.Errorf("%s: the check takes a link", linked)
			}

			failures := 0
			run := followed(t, progress.NewFollower(file, "", nil), func(error) { failures++ })
			reportRun(run)
			run.End(t.Context(), nil)

			content, err := os.ReadFile(victim)
			if failures != 1 || (err == nil) != exists || exists && string(content) != "old" {
				t.Errorf("%s: %d failures, the victim is %q (%v)", linked, failures, content, err)
			}
		}
	}
}

// The next line makes a file that others can read private to its owner, because reasons may contain private names.
func TestFile_isItsOwnersAlone(t *testing.T) {
	t.Parallel()

	if runtime.GOOS == "windows" {
		t.Skip("Windows keeps no modes")
	}

	file := filepath.Join(t.TempDir(), "progress.jsonl")

	for _, name := range []string{file, file + ".txt", file + ".html"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}

		if err := os.Chmod(name, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	run := follow(t, progress.NewFollower(file, "", nil))
	reportRun(run)
	run.End(t.Context(), nil)

	for _, name := range []string{file, file + ".txt", file + ".html"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 || info.Size() == 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
