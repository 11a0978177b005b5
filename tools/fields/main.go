// Command fields writes the table of the kinds and fields of machine configurations by the minor version of Talos 1
// that introduced them. It asks the types of the machinery library of each release, since they decide which keys a
// machine refuses as unknown.
package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// releases are the machinery releases that are read, by minor version. The older ones bring their own dependencies, the
// pinned one has those of the provider.
var releases = map[int]string{10: "v1.10.6", 11: "v1.11.6", 12: "v1.12.4", 13: "v1.13.9", 14: pinned}

// pinned is the release in go.mod; a test compares it.
const pinned = "v1.14.1"

const machinery = "github.com/siderolabs/talos/pkg/machinery"

// What is added to a copy of the library: its registry of kinds is internal.
var (
	//go:embed walk/registry.go.txt
	registry []byte
	//go:embed walk/main.go.txt
	walk []byte
)

func main() {
	log.SetFlags(0)

	out := flag.String("o", "", "file that the table is written to")
	flag.Parse()

	table, err := generate(context.Background())
	if err == nil {
		err = os.WriteFile(*out, table, 0o600)
	}

	if err != nil {
		log.Fatal(err)
	}
}

// generate is the table: a line for each kind and each field of a kind that is older than the field.
func generate(ctx context.Context) ([]byte, error) {
	minors := slices.Sorted(maps.Keys(releases))

	var lists [][]string

	for _, minor := range minors {
		list, err := fieldsOf(ctx, releases[minor])
		if err != nil {
			return nil, fmt.Errorf("read the fields of machinery %s: %w", releases[minor], err)
		}

		lists = append(lists, list)
	}

	table := &bytes.Buffer{}

	fmt.Fprint(table, "# Kinds and fields by the minor version of Talos 1 that introduced them; ",
		"written by make generate from machinery")

	for _, minor := range minors {
		fmt.Fprint(table, " ", releases[minor])
	}

	fmt.Fprintln(table)

	for _, line := range introduced(minors, lists) {
		fmt.Fprintln(table, line)
	}

	return table.Bytes(), nil
}

// introduced lists kinds, and fields below them, with the first version that has each. A field is left out when what it
// is in came with the same version, and so is each field of the oldest version.
func introduced(minors []int, lists [][]string) []string {
	since := map[string]int{}

	for i, list := range lists {
		for _, path := range list {
			if _, ok := since[path]; !ok {
				since[path] = minors[i]
			}
		}
	}

	paths := slices.SortedFunc(maps.Keys(since), func(a, b string) int {
		return cmp.Or(cmp.Compare(since[a], since[b]), cmp.Compare(a, b))
	})

	var lines []string

	for _, path := range paths {
		if since[parent(path)] != since[path] {
			lines = append(lines, fmt.Sprint(since[path], " ", path))
		}
	}

	return lines
}

// parent is the field or kind that a field is in, and empty for a kind. Keys of a map are no field.
func parent(path string) string {
	path = path[:max(strings.LastIndexAny(path, " ."), 0)]

	return strings.TrimSuffix(path, ".*")
}

// fieldsOf runs the walk over the types in a copy of one release.
func fieldsOf(ctx context.Context, release string) ([]string, error) {
	source, err := downloaded(ctx, release)
	if err != nil {
		return nil, err
	}

	folder, err := os.MkdirTemp("", "machinery-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a copy in the folder for temporary files

	if err := os.CopyFS(folder, os.DirFS(source)); err != nil {
		return nil, err
	}

	for path, content := range map[string][]byte{"registry/fields.go": registry, "fields/main.go": walk} {
		path = filepath.Join(folder, "config", "internal", path)

		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}

		if err := os.WriteFile(path, content, 0o600); err != nil {
			return nil, err
		}
	}

	arguments := []string{"run", "-C", folder, "./config/internal/fields"}

	if release == pinned {
		mod := filepath.Join(folder, "provider.mod")
		if err := replaced(ctx, mod, folder); err != nil {
			return nil, err
		}

		arguments = []string{"run", "-mod=mod", "-modfile=" + mod, machinery + "/config/internal/fields"}
	}

	listed, err := run(ctx, arguments...)

	return strings.Split(strings.TrimSpace(string(listed)), "\n"), err
}

// replaced writes a go.mod of the provider that takes machinery from a folder.
func replaced(ctx context.Context, mod, folder string) error {
	for from, to := range map[string]string{"go.mod": mod, "go.sum": strings.TrimSuffix(mod, ".mod") + ".sum"} {
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}

		if err := os.WriteFile(to, content, 0o600); err != nil {
			return err
		}
	}

	_, err := run(ctx, "mod", "edit", "-replace="+machinery+"="+folder, mod)

	return err
}

// downloaded is the folder of a release in the module cache.
func downloaded(ctx context.Context, release string) (string, error) {
	answer, err := run(ctx, "mod", "download", "-json", machinery+"@"+release)
	if err != nil {
		return "", err
	}

	var module struct{ Dir string }
	if err := json.Unmarshal(answer, &module); err != nil {
		return "", fmt.Errorf("read what go mod download printed: %w", err)
	}

	return module.Dir, nil
}

func run(ctx context.Context, arguments ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer

	command := exec.CommandContext(ctx, "go", arguments...)
	command.Stdout, command.Stderr = &stdout, io.MultiWriter(&stderr, os.Stderr)

	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", arguments[0], err, stderr.String())
	}

	return stdout.Bytes(), nil
}
