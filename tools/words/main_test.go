package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

func TestProblems_ofEachPlace(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	lists := [3]string{
		"swap:\n  nobody: none\n  in the words of: the term\n  licences?: license\n", "whoever: none\n", "- echoes nobody\n- NobodysRule\n",
	}

	for i, content := range lists {
		lists[i] = filepath.Join(folder, strconv.Itoa(i)+".yml")
		if err := os.WriteFile(lists[i], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	denied, err := read(lists[0], lists[1], lists[2])
	if err != nil {
		t.Fatal(err)
	}

	for file, content := range map[string]string{
		"clean.go":       "package p\n\n// Each client has a name.\nconst text = \"each\"\n",
		"comment.go":     "package p\n\n// A name that nobody has.\nconst text = \"\"\n",
		"two_lines.go":   "package p\n\n// A name in the\n// words of DNS.\nconst text = \"\"\n",
		"text.go":        "package p\n\nconst text = \"Nobody has it\"\n",
		"text_test.go":   "package p\n\nconst text = \"Nobody has it\"\n",
		"name.go":        "package p\n\nfunc f() { ownedByNobody := 1; _ = ownedByNobody }\n",
		"nobody_else.go": "package p\n",
		"own.go":         "package p\n\nfunc whoeverAsks() {}\n",
		"pattern.go":     "package p\n\nfunc f(licences int) {}\n",
		"excepted.go":    "package p\n\nconst textNobodysRule = \"it echoes nobody\"\n",
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
		if slices.Contains([]string{"clean.go", "text_test.go", "parts.go", "excepted.go"}, file) {
			want = 0
		}

		if len(found) != want {
			t.Errorf("%s: found %q, want %d", file, found, want)
		}
	}
}

// The style of the project is read as Vale reads it, and its own files pass.
func TestRead_theStyle(t *testing.T) {
	t.Parallel()

	denied, err := read("../prose/styles/talosop/Words.yml", "names.yml", "exceptions.yml")
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"madeAnew", "keyholders", "licence"} {
		if found := maps.Collect(denied.inName(name)); len(found) != 1 {
			t.Errorf("%s: found %v", name, found)
		}
	}

	if found := maps.Collect(denied.inText("it is put right")); len(found) == 0 {
		t.Error("no rule for a phrase")
	}
}
