// Package remainder returns what the configuration of a machine has beyond the one from its settings, as patches.
// An import writes these patches, so that nothing of a cluster from another tool is lost. Pure.
//
// A difference is an added value, a removed value, or both where one value replaces another: Talos merges lists by
// appending. Values that are secret, or often are, are left out and named, because they must not be shown.
package remainder

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
)

// Remainder is what one machine has beyond its settings.
type Remainder struct {
	documents map[string]document
	// Hidden are the places that are in no patch because their values are secrets, or often are.
	Hidden []fieldpath.Place
}

// document is the difference of one document.
type document struct {
	machineconfig.Document

	// isNew is true where settings make no such document.
	isNew bool
	// deletes has the removed values, in the form of a patch, and adds those that are added afterwards.
	deletes, adds map[string]any
}

func (d document) empty() bool { return !d.isNew && len(d.deletes) == 0 && len(d.adds) == 0 }

// gone is how a patch removes a value.
func gone() map[string]any { return map[string]any{"$patch": "delete"} }

func isGone(value any) bool { return reflect.DeepEqual(value, any(gone())) }

// Whole are places whose values are replaced as a whole, by their texts: lists that Talos does not merge by appending.
type Whole map[string]bool

// Of says what takes base, which settings make, to active, which a machine has.
func Of(base, active []byte, whole Whole) (Remainder, error) {
	before, after, err := both(base, active)
	if err != nil {
		return Remainder{}, err
	}

	return between(before, after, whole), nil
}

// Revealed is Of with the values that are secret: for a file that its owner alone reads.
func Revealed(base, active []byte) (Remainder, error) {
	before, after, err := both(base, active)
	if err != nil {
		return Remainder{}, err
	}

	for _, documents := range []map[string]machineconfig.Document{before, after} {
		for name, d := range documents {
			d.Hidden = func(fieldpath.Path) bool { return false }
			documents[name] = d
		}
	}

	return between(before, after, nil), nil
}

func both(base, active []byte) (before, after map[string]machineconfig.Document, err error) {
	if before, err = machineconfig.Documents(base); err != nil {
		return nil, nil, fmt.Errorf("the generated configuration: %w", err)
	}

	if after, err = machineconfig.Documents(active); err != nil {
		return nil, nil, fmt.Errorf("the active configuration: %w", err)
	}

	return before, after, nil
}

func between(before, after map[string]machineconfig.Document, whole Whole) Remainder {
	r := Remainder{documents: map[string]document{}}

	for name, d := range after {
		c := comparison{name: name, of: d, whole: whole}

		change := document{Document: d}
		if was, there := before[name]; there {
			c.hiddenBefore = was.Hidden
			change.deletes, change.adds = c.maps(nil, was.Content, d.Content)
		} else {
			change.adds, change.isNew = c.shown(nil, d.Content).(map[string]any)
		}

		r.Hidden = append(r.Hidden, c.left...)

		if !change.empty() {
			r.documents[name] = change
		}
	}

	for name, d := range before {
		switch _, kept := after[name]; {
		case kept:
		case hides(d.Hidden, nil, d.Content):
			r.Hidden = append(r.Hidden, fieldpath.Place{Document: name})
		default:
			r.documents[name] = document{Document: d, deletes: gone()}
		}
	}

	slices.SortFunc(r.Hidden, func(a, b fieldpath.Place) int { return cmp.Compare(a.String(), b.String()) })

	return r
}

// Empty reports whether there is nothing to write.
func (r Remainder) Empty() bool { return len(r.documents) == 0 }

// Places are where there is something to write: the values that are added, and those that are taken out.
func (r Remainder) Places() []fieldpath.Place {
	var places []fieldpath.Place

	for _, name := range slices.Sorted(maps.Keys(r.documents)) {
		for _, part := range []map[string]any{r.documents[name].deletes, r.documents[name].adds} {
			places = placesIn(places, fieldpath.Place{Document: name}, part)
		}
	}

	return places
}

func placesIn(places []fieldpath.Place, at fieldpath.Place, value any) []fieldpath.Place {
	inner, ok := value.(map[string]any)
	if !ok || isGone(value) || len(inner) == 0 {
		return append(places, at)
	}

	for _, key := range slices.Sorted(maps.Keys(inner)) {
		places = placesIn(places, fieldpath.Place{Document: at.Document, Path: below(at.Path, key)}, inner[key])
	}

	return places
}

func below(path fieldpath.Path, step any) fieldpath.Path { return append(slices.Clip(path), step) }

// comparison compares two forms of one document.
type comparison struct {
	name  string
	of    machineconfig.Document
	whole Whole
	left  []fieldpath.Place
	// hiddenBefore is Hidden of the former form, of which nothing secret is taken out either: patches do not decide what a
	// machine belongs to.
	hiddenBefore func(fieldpath.Path) bool
}

func (c *comparison) place(path fieldpath.Path) fieldpath.Place {
	return fieldpath.Place{Document: c.name, Path: path}
}

func (c *comparison) maps(path fieldpath.Path, before, after map[string]any) (deletes, adds map[string]any) {
	deletes, adds = map[string]any{}, map[string]any{}

	for key, value := range after {
		at := below(path, key)

		was, there := before[key]
		if there && reflect.DeepEqual(was, value) || c.otherImage(at, was, value) {
			continue
		}

		inner, isMap := value.(map[string]any)
		wasInner, wasMap := was.(map[string]any)

		switch {
		case isMap && wasMap && !c.replaced(at):
			put(deletes, adds, key)(c.maps(at, wasInner, inner))
		case there:
			c.replace(deletes, adds, at, was, value)
		default:
			if shown := c.shown(at, value); shown != nil {
				adds[key] = shown
			}
		}
	}

	for key, value := range before {
		switch _, kept := after[key]; {
		case kept:
		case hides(c.hiddenBefore, below(path, key), value):
			c.left = append(c.left, c.place(below(path, key)))
		default:
			deletes[key] = gone()
		}
	}

	return deletes, adds
}

// put keeps the values below a key, unless they are empty.
func put(deletes, adds map[string]any, key string) func(innerDeletes, innerAdds map[string]any) {
	return func(innerDeletes, innerAdds map[string]any) {
		if len(innerDeletes) > 0 {
			deletes[key] = innerDeletes
		}

		if len(innerAdds) > 0 {
			adds[key] = innerAdds
		}
	}
}

// replace replaces one value by another.
func (c *comparison) replace(deletes, adds map[string]any, at fieldpath.Path, was, value any) {
	key, _ := at[len(at)-1].(string)

	shown := c.shown(at, value)
	if shown == nil {
		return // as it is left out, so is that the former one goes
	}

	before, wasList := was.([]any)
	after, isList := value.([]any)

	switch {
	case wasList && isList && !c.replaced(at) && len(after) > len(before) &&
		reflect.DeepEqual(before, after[:len(before)]):
		adds[key] = after[len(before):]
	case isList || wasList || c.replaced(at) || isEmptyMap(value):
		deletes[key] = gone()
		adds[key] = shown
	default:
		adds[key] = shown
	}
}

func isEmptyMap(value any) bool {
	inner, ok := value.(map[string]any)

	return ok && len(inner) == 0
}

func (c *comparison) replaced(path fieldpath.Path) bool {
	return c.whole[c.place(path).String()]
}

// otherImage is whether a value differs from another only in the tag of an image of Kubernetes, which is its version:
// versions are compared by themselves.
func (c *comparison) otherImage(path fieldpath.Path, was, value any) bool {
	before, isText := was.(string)
	after, areTexts := value.(string)

	return isText && areTexts && c.of.HasImage(path) && repository(before) == repository(after)
}

func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	tag, _ := kubenames.Tag(image)

	return strings.TrimSuffix(image, ":"+tag)
}

// shown is a value without its hidden parts; nil when nothing is left. The values beside a hidden one are left out
// with it, because half a login is useless. So is a list with a hidden element.
func (c *comparison) shown(path fieldpath.Path, value any) any {
	switch value := value.(type) {
	case map[string]any:
		return c.shownMap(path, value)
	case []any:
		if c.hides(path, value) {
			c.left = append(c.left, c.place(path))

			return nil
		}
	default:
		if c.of.Hidden(path) {
			c.left = append(c.left, c.place(path))

			return nil
		}
	}

	return value
}

func (c *comparison) shownMap(path fieldpath.Path, value map[string]any) any {
	for key, inner := range value {
		if _, isMap := inner.(map[string]any); !isMap && c.hides(below(path, key), inner) {
			c.left = append(c.left, c.place(path))

			return nil
		}
	}

	shown := map[string]any{}

	for key, inner := range value {
		if part := c.shown(below(path, key), inner); part != nil {
			shown[key] = part
		}
	}

	if len(shown) == 0 && len(value) > 0 {
		return nil
	}

	return shown
}

func (c *comparison) hides(path fieldpath.Path, value any) bool {
	return hides(c.of.Hidden, path, value)
}

// hides reports whether anything in a value is hidden.
func hides(hidden func(fieldpath.Path) bool, path fieldpath.Path, value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if hides(hidden, below(path, key), inner) {
				return true
			}
		}
	case []any:
		for i, inner := range value {
			if hides(hidden, below(path, i), inner) {
				return true
			}
		}
	default:
		return hidden(path)
	}

	return false
}
