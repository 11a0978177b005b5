// Command fields writes the table of the kinds and fields of machine configurations by the minor version of Talos 1
// that introduced them. It asks the types of the machinery library of each release, since they decide which keys a
// machine refuses as unknown.
package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/tools/machinery"
)

// What is added to a copy of the library: its registry of kinds is internal.
var (
	//go:embed walk/registry.go.txt
	registry []byte
	//go:embed walk/main.go.txt
	walk []byte
)

func main() { machinery.Write(generate) }

// generate is the table: a line for each kind and each field of a kind that is older than the field.
func generate(ctx context.Context) ([]byte, error) {
	minors := slices.Sorted(maps.Keys(machinery.Releases))

	var lists [][]string

	for _, minor := range minors {
		list, err := fieldsOf(ctx, machinery.Releases[minor])
		if err != nil {
			return nil, fmt.Errorf("read the fields of machinery %s: %w", machinery.Releases[minor], err)
		}

		lists = append(lists, list)
	}

	table := &bytes.Buffer{}

	fmt.Fprint(table, "# Kinds and fields by the minor version of Talos 1 that introduced them; ",
		"written by make generate from machinery")

	for _, minor := range minors {
		fmt.Fprint(table, " ", machinery.Releases[minor])
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

// fieldsOf runs the walk over the types of one release.
func fieldsOf(ctx context.Context, release string) ([]string, error) {
	listed, err := machinery.Run(ctx, release, map[string][]byte{"config/internal/registry/fields.go": registry,
		"config/internal/fields/main.go": walk}, "config/internal/fields", nil)

	return strings.Split(strings.TrimSpace(string(listed)), "\n"), err
}
