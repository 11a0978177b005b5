package machineconfig

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// ChangeKind is what happens to a value.
type ChangeKind string

// The kinds of changes.
const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Changed ChangeKind = "changed"
)

// Sensitive stands in a Change for a value that must not be shown.
const Sensitive = "(sensitive value)"

// Change is one difference between two configurations. It contains no secrets.
type Change struct {
	Place

	Kind ChangeKind
	// Old and New are the values, Sensitive, or empty where there is none.
	Old, New string
}

// String is the change on one line.
func (c Change) String() string {
	where := strings.TrimSuffix(c.Document+": "+c.Path.String(), ": ")

	switch c.Kind {
	case Added:
		return fmt.Sprintf("+ %s = %s", where, c.New)
	case Removed:
		return fmt.Sprintf("- %s = %s", where, c.Old)
	default:
		return fmt.Sprintf("~ %s: %s -> %s", where, c.Old, c.New)
	}
}

// Diff lists what changes between two configurations, by document and path, in a fixed order. Comments, the order of
// documents and keys, ways of writing the same value and the images of Kubernetes are no changes; see Digest. Two
// configurations of the same Digest have no differences. What Talos counts as secret shows as Sensitive, and so does
// what often carries secrets (files, environments, manifests, extension services, passwords in URLs) and every value of
// a document this build does not know.
func Diff(before, after []byte) ([]Change, error) {
	old, err := readable(before)
	if err != nil {
		return nil, fmt.Errorf("compare configurations: the old one: %w", err)
	}

	updated, err := readable(after)
	if err != nil {
		return nil, fmt.Errorf("compare configurations: the new one: %w", err)
	}

	var changes []Change

	for key, value := range old {
		change := Change{Place: value.place, Old: value.shown, New: updated[key].shown, Kind: Changed}

		switch replacement, kept := updated[key]; {
		case !kept:
			change.Kind = Removed
		case reflect.DeepEqual(value.exact, replacement.exact):
			continue
		}

		changes = append(changes, change)
	}

	for key, value := range updated {
		if _, present := old[key]; !present {
			changes = append(changes, Change{Place: value.place, Kind: Added, New: value.shown})
		}
	}

	slices.SortFunc(changes, func(a, b Change) int {
		// The main document first: everything else is by name.
		return cmp.Or(
			cmp.Compare(rank(a.Document), rank(b.Document)), cmp.Compare(a.Document, b.Document), comparePaths(a.Path, b.Path),
		)
	})

	return changes, nil
}

func rank(document string) int {
	if document == mainDocument {
		return 0
	}

	return 1
}

// value is what is compared and what may be shown of it.
type value struct {
	place Place
	exact any
	shown string
}

// readable flattens a configuration into its values, by the text of their places.
func readable(cfg []byte) (map[string]value, error) {
	documents, err := load(cfg)
	if err != nil {
		return nil, err
	}

	values := map[string]value{}

	for _, document := range documents {
		hidden, err := hiddenPaths(document)
		if err != nil {
			return nil, err
		}

		name := document.id.String()
		before := len(values)

		for _, leaf := range flatten(document.content) {
			// They are the identity of a document.
			if document.id.kind != "" && len(leaf.path) == 1 &&
				slices.Contains([]any{"apiVersion", "kind", "name"}, leaf.path[0]) {
				continue
			}

			at := Place{Document: name, Path: leaf.path}
			values[at.String()] = value{place: at, exact: leaf.value, shown: show(leaf, hidden(leaf.path))}
		}

		if len(values) == before {
			at := Place{Document: name}
			values[at.String()] = value{place: at, shown: "(empty)"}
		}
	}

	return values, nil
}

// hiddenPaths decides which values of a document are not shown.
func hiddenPaths(d document) (func(path FieldPath) bool, error) {
	if d.provider == nil {
		return func(FieldPath) bool { return true }, nil
	}

	redacted, err := contentOf(d.provider.RedactSecrets(redactedValue), chunk{})
	if err != nil {
		return nil, fmt.Errorf("document %s: %w", d.id, err)
	}

	// Redaction keeps the structure, so a value that differs at the same path was a secret.
	after := map[string]any{}
	for _, leaf := range flatten(redacted) {
		after[leaf.path.String()] = leaf.value
	}

	secret := map[string]bool{}

	for _, leaf := range flatten(d.content) {
		if path := leaf.path.String(); !reflect.DeepEqual(after[path], leaf.value) {
			secret[path] = true
		}
	}

	return func(path FieldPath) bool { return secret[path.String()] || oftenSecret(path) }, nil
}

var userinfoPattern = regexp.MustCompile(`//[^/@\s]*@`)

const longestShown = 120

// show writes a value on one line.
func show(leaf leaf, hidden bool) string {
	switch content := leaf.value.(type) {
	case map[string]any:
		return "{}"
	case []any:
		return "[]"
	case nil:
		return "null"
	case string:
		if hidden {
			return Sensitive
		}

		content = userinfoPattern.ReplaceAllString(content, "//"+Sensitive+"@")
		if runes := []rune(content); len(runes) > longestShown {
			content = string(runes[:longestShown]) + "…"
		}

		return fmt.Sprintf("%q", content)
	default:
		if hidden {
			return Sensitive
		}

		return fmt.Sprint(content)
	}
}
