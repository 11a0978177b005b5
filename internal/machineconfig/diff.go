package machineconfig

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// ChangeKind is the kind of a change of a value.
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
	fieldpath.Place

	Kind ChangeKind
	// Old and New are the values, Sensitive, or empty where there is none.
	Old, New string
	// element is the list element that is added or removed with the value; empty when there is none.
	element fieldpath.Path
}

const (
	redactedValue = "redacted"
	// shortestSecret keeps a secret like "a" from redacting every message.
	shortestSecret = 4
)

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

// Brief is the change on one line with the most useful parts only: it shows values of settings of the machine, and
// never values that may carry secrets.
func (c Change) Brief() string {
	where := c.Path.String()
	if c.Document != mainDocument {
		where = strings.TrimSuffix(c.Document+" "+where, " ")
	}

	switch {
	case c.Kind == Removed:
		return "- " + where
	case c.Kind == Added && c.plain():
		return fmt.Sprintf("+ %s = %s", where, c.New)
	case c.Kind == Added:
		return "+ " + where
	case c.plain() && c.Old != "":
		return fmt.Sprintf("%s = %s -> %s", where, c.Old, c.New)
	case c.plain():
		return fmt.Sprintf("%s = %s", where, c.New)
	default:
		return where
	}
}

// longestPlain is the number of characters that a value has at most to be shown beside its place.
const longestPlain = 48

// plain reports whether the values of a change are shown.
func (c Change) plain() bool {
	shown := func(text string) bool { return text != Sensitive && len(text) <= longestPlain }
	if c.New == "" || !shown(c.Old) || !shown(c.New) {
		return false
	}

	return places.Plain(c.documentKind(), c.Path)
}

// Renames reports whether a change gives the machine another host name.
func (c Change) Renames() bool {
	return places.Hostname.Covers(c.documentKind(), c.Path)
}

// OfInstallerImage reports whether the image changes that installs Talos.
func (c Change) OfInstallerImage() bool {
	return places.InstallerImage.Covers(c.documentKind(), c.Path)
}

// documentKind is the kind of the document, which the main one has not.
func (c Change) documentKind() string {
	kind, _, _ := strings.Cut(c.Document, "/")
	if kind == mainDocument {
		return ""
	}

	return kind
}

// Grouped combines changes for display: an element of a list that is added or removed as a whole is one change.
func Grouped(changes []Change) []Change {
	var out []Change

	for _, change := range changes {
		change = change.whole()

		last := len(out) - 1
		if last >= 0 && out[last].Kind == change.Kind && out[last].Place.Equal(change.Place) {
			continue
		}

		out = append(out, change)
	}

	return out
}

// whole is the change of the element of a list that comes or goes with the value.
func (c Change) whole() Change {
	if len(c.element) == 0 {
		return c
	}

	return Change{Place: fieldpath.Place{Document: c.Document, Path: c.element}, Kind: c.Kind}
}

// PutBack lists what changes at places where a machine differs from the configuration that it gets.
func PutBack(cfg []byte, places []fieldpath.Place) ([]Change, error) {
	if len(places) == 0 {
		return nil, nil
	}

	values, err := readable(cfg, load)
	if err != nil {
		return nil, fmt.Errorf("look up places of a configuration: %w", err)
	}

	var changes []Change

	for _, place := range places {
		change := Change{Place: place, Kind: Removed}
		if wanted, there := values[place.String()]; there {
			change.Kind, change.New = Changed, wanted.shown
		}

		changes = append(changes, change)
	}

	return changes, nil
}

// Diff lists the changes between two configurations, by document and path, in a fixed order. Comments, the order
// of documents and keys, spellings of the same value and the images of Kubernetes are no changes; see Digest. Two
// configurations of the same Digest have no differences. Values that Talos counts as secret show as Sensitive. So
// do values that often carry secrets (files, environments, manifests, extension services, passwords in URLs) and
// every value of an unknown document.
func Diff(before, after []byte) ([]Change, error) {
	old, err := readable(before, load)
	if err != nil {
		return nil, fmt.Errorf("compare configurations: old configuration: %w", err)
	}

	updated, err := readable(after, load)
	if err != nil {
		return nil, fmt.Errorf("compare configurations: new configuration: %w", err)
	}

	return changesOf(old, updated), nil
}

// DiffWhole is Diff for people who compare two configurations: the images of Kubernetes count. Errors are *FieldError
// of "before" or "after".
func DiffWhole(before, after string) ([]Change, error) {
	old, err := readable([]byte(before), loadWhole)
	if err != nil {
		return nil, notConfiguration("before", err)
	}

	updated, err := readable([]byte(after), loadWhole)
	if err != nil {
		return nil, notConfiguration("after", err)
	}

	return changesOf(old, updated), nil
}

func changesOf(old, updated values) []Change {

	var changes []Change

	for key, value := range old {
		change := Change{Place: value.place, Old: value.shown, New: updated[key].shown, Kind: Changed}

		switch replacement, kept := updated[key]; {
		case !kept && value.nothingIn(updated):
			continue
		case !kept:
			change.Kind, change.element = Removed, updated.newElement(value.place)
		case sameValue(value.exact, replacement.exact):
			continue
		}

		changes = append(changes, change)
	}

	for key, value := range updated {
		if _, present := old[key]; !present && !value.nothingIn(old) {
			changes = append(changes,
				Change{Place: value.place, Kind: Added, New: value.shown, element: old.newElement(value.place)})
		}
	}

	slices.SortFunc(changes, func(a, b Change) int {
		// The main document first, then the others by name.
		return cmp.Or(
			cmp.Compare(rank(a.Document), rank(b.Document)), cmp.Compare(a.Document, b.Document),
			fieldpath.Compare(a.Path, b.Path),
		)
	})

	return changes
}

// sameValue compares as Digest does, to which 0 and 0.0 are the same.
func sameValue(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}

	one, errOne := json.Marshal(a)
	other, errOther := json.Marshal(b)

	return errOne == nil && errOther == nil && bytes.Equal(one, other)
}

func rank(document string) int {
	if document == mainDocument {
		return 0
	}

	return 1
}

// value is a compared value and the part of it that may be shown.
type value struct {
	place fieldpath.Place
	exact any
	shown string
}

// nothingIn reports whether a value stands for an empty document that has values among others.
func (v value) nothingIn(others values) bool {
	return len(v.place.Path) == 0 && others.has(v.place.Document, nil)
}

// values are those of a configuration, by the text of their places.
type values map[string]value

// newElement is the path of a new list element around a place.
func (v values) newElement(place fieldpath.Place) fieldpath.Path {
	for i, step := range place.Path {
		if _, listed := step.(int); !listed || i == len(place.Path)-1 {
			continue
		}

		if element := place.Path[:i+1]; !v.has(place.Document, element) {
			return element
		}
	}

	return nil
}

// has reports whether there is a value at a path or below it.
func (v values) has(document string, path fieldpath.Path) bool {
	for _, value := range v {
		if value.place.Document == document && value.place.Path.StartsWith(path...) {
			return true
		}
	}

	return false
}

// readable flattens a configuration into its values.
func readable(cfg []byte, load func([]byte) ([]document, error)) (values, error) {
	documents, err := load(cfg)
	if err != nil {
		return nil, err
	}

	all := values{}

	for _, document := range documents {
		hidden, err := hiddenPaths(document)
		if err != nil {
			return nil, err
		}

		name := document.id.String()
		before := len(all)

		for _, leaf := range flatten(document.content) {
			if document.identifies(leaf.path) {
				continue
			}

			at := fieldpath.Place{Document: name, Path: leaf.path}
			all[at.String()] = value{place: at, exact: leaf.value, shown: show(leaf, hidden(leaf.path))}
		}

		if len(all) == before {
			at := fieldpath.Place{Document: name}
			all[at.String()] = value{place: at, shown: "(empty)"}
		}
	}

	return all, nil
}

// identifies reports whether a value is of the identity of a document.
func (d document) identifies(path fieldpath.Path) bool {
	return d.id.kind != "" && len(path) == 1 && slices.Contains([]any{"apiVersion", "kind", "name"}, path[0])
}

// hiddenPaths decides which values of a document are not shown.
func hiddenPaths(d document) (func(path fieldpath.Path) bool, error) {
	if d.provider == nil {
		return func(fieldpath.Path) bool { return true }, nil
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

	return func(path fieldpath.Path) bool { return secret[path.String()] || oftenSecret(d.id.kind, path) }, nil
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
