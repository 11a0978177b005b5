package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestProblems_ofEachPlace(t *testing.T) {
	t.Parallel()

	denied := denyList{names: map[string]string{"nobody": "none"}, prose: mustRules(t, "nobody: none\nin the words of: the term\n")}
	folder := t.TempDir()

	for file, content := range map[string]string{
		"clean.go":       "package p\n\n// Each client has a name.\nconst text = \"each\"\n",
		"comment.go":     "package p\n\n// A name that nobody has.\nconst text = \"\"\n",
		"two_lines.go":   "package p\n\n// A name in the\n// words of DNS.\nconst text = \"\"\n",
		"text.go":        "package p\n\nconst text = \"Nobody has it\"\n",
		"text_test.go":   "package p\n\nconst text = \"Nobody has it\"\n",
		"name.go":        "package p\n\nfunc f() { ownedByNobody := 1; _ = ownedByNobody }\n",
		"nobody_else.go": "package p\n",
		"parts.go":       "package p\n\nfunc f(nobodys int) {}\n",
	} {
		path := filepath.Join(folder, file)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}

		found, err := denied.problems(path)
		if err != nil {
			t.Fatal(err)
		}

		want := 1
		if slices.Contains([]string{"clean.go", "text_test.go", "parts.go"}, file) {
			want = 0
		}

		if len(found) != want {
			t.Errorf("%s: found %q, want %d", file, found, want)
		}
	}
}

// With comments alone neither texts nor names count.
func TestProblems_ofCommentsOnly(t *testing.T) {
	t.Parallel()

	denied := denyList{names: map[string]string{"nobody": "none"}, prose: mustRules(t, "nobody: none\n"), commentsOnly: true}
	path := filepath.Join(t.TempDir(), "nobody.go")

	source := "package p\n\n// A name that nobody has.\nconst ofNobody = \"nobody\"\n"
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}

	if found, err := denied.problems(path); err != nil || len(found) != 1 {
		t.Errorf("found %q (%v), want the comment", found, err)
	}
}

// The style of the project is read as Vale reads it, and its own files pass.
func TestRead_theStyle(t *testing.T) {
	t.Parallel()

	denied, err := read("../prose/styles/talosop/Words.yml", "names.yml")
	if err != nil {
		t.Fatal(err)
	}

	if denied.names["anew"] == "" || denied.names["sighting"] == "" {
		t.Errorf("words of names are missing: %v", denied.names)
	}

	if !slices.ContainsFunc(denied.prose, func(r rule) bool { return r.words.MatchString("it is put right") }) {
		t.Error("no rule for a phrase")
	}
}

func mustRules(t *testing.T, swap string) []rule {
	t.Helper()

	folder := t.TempDir()
	style, names := filepath.Join(folder, "style.yml"), filepath.Join(folder, "names.yml")

	for path, content := range map[string]string{style: "swap:\n  " + strings.ReplaceAll(strings.TrimSpace(swap), "\n", "\n  "), names: "{}"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	denied, err := read(style, names)
	if err != nil {
		t.Fatal(err)
	}

	return denied.prose
}
