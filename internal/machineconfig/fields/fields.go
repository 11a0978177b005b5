// Package fields knows the kinds of documents of machine configurations, and which version of Talos introduced each
// kind and field. A machine refuses a configuration with a kind or key that its Talos does not know. Pure.
package fields

import (
	_ "embed"
	"maps"
	"slices"
	"strconv"
	"strings"
)

//go:embed table.txt
var table string

// kind is a kind of documents, with the fields that are newer than it.
type kind struct {
	since  uint64
	fields []field
}

// field is the path of a field, in which "*" stands for the keys of a map. Elements of lists have no step of their own.
type field struct {
	since uint64
	path  []string
}

var kinds = parse(table)

func parse(table string) map[string]kind {
	parsed := map[string]kind{}

	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}

		since, _ := strconv.ParseUint(words[0], 10, 64)
		k := parsed[words[1]]

		if len(words) == 2 {
			k.since = since
		} else {
			k.fields = append(k.fields, field{since, strings.Split(words[2], ".")})
		}

		parsed[words[1]] = k
	}

	return parsed
}

// Kinds are all kinds that a supported Talos has, sorted; "v1alpha1" is the main document.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

// Since is the minor version of Talos 1 that introduced a kind, the oldest supported one for kinds that are older.
func Since(kind string) uint64 { return kinds[kind].since }

// SinceField is the minor version of Talos 1 that introduced a field of a kind. It is that of the kind where the table
// has no newer one.
func SinceField(kind string, path []string) uint64 {
	since := Since(kind)

	for _, f := range kinds[kind].fields {
		if len(f.path) <= len(path) && slices.Equal(f.path, path[:len(f.path)]) {
			since = max(since, f.since)
		}
	}

	return since
}

// Newer finds a field in the content of a document that Talos 1.<minor> does not know, and the minor version that
// introduced it. The content has maps, lists and values. An empty path means that there is none.
func Newer(kind string, content any, minor uint64) (path string, least uint64) {
	for _, f := range kinds[kind].fields {
		if f.since > minor && has(content, f.path) {
			return strings.Join(f.path, "."), f.since
		}
	}

	return "", 0
}

func has(content any, path []string) bool {
	switch content := content.(type) {
	case []any:
		return slices.ContainsFunc(content, func(element any) bool { return has(element, path) })
	case map[string]any:
		if len(path) > 0 && path[0] == "*" {
			return slices.ContainsFunc(slices.Collect(maps.Values(content)), func(v any) bool { return has(v, path[1:]) })
		}

		if len(path) > 0 {
			inner, ok := content[path[0]]

			return ok && (len(path) == 1 || has(inner, path[1:]))
		}
	}

	return len(path) == 0
}
