package diff

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/releaseutil"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

// Verb is the change of an object.
type Verb string

// What becomes of objects.
const (
	Add    Verb = "add"
	Alter  Verb = "change"
	Remove Verb = "remove"
)

// Change of an object between two manifests.
type Change struct {
	Verb Verb
	// Object is the new one, or the old one where there is no new one.
	Object Object
	// Fields that change, with [Alter]: those that change with every version of a chart are last.
	Fields []Field
}

// Field of an object that changes. Old and New are JSON, empty for what is not there; of Secrets the
// contents are hidden, and nothing is cut.
type Field struct{ Path, Old, New string }

// Compare says what becomes of the objects, in the order in which Helm installs them. The order within the
// manifests does not count. The content of Secrets is hidden; redact, which may be nil, sees everything
// else that is shown of a field.
func Compare(before, after []Object, redact func(string) string) []Change {
	olds, news := byKey(before), byKey(after)

	var changes []Change

	for key, object := range news {
		old, found := olds[key]
		if !found {
			changes = append(changes, Change{Verb: Add, Object: object})

			continue
		}

		if change, differs := Altered(object, objects.Differences(old.Content, object.Content), redact); differs {
			changes = append(changes, change)
		}
	}

	for key, object := range olds {
		if _, found := news[key]; !found {
			changes = append(changes, Change{Verb: Remove, Object: object})
		}
	}

	Sort(changes)

	return changes
}

// Sort puts changes in the order in which Helm installs their objects.
func Sort(changes []Change) {
	slices.SortFunc(changes, func(a, b Change) int { return inOrder(a.Object, b.Object) })
}

// Altered is the change of an object that differs from what is there, and false where it does not. What
// is hidden, and redact, are as for [Compare].
func Altered(
	object Object, differences []objects.Difference, redact func(string) string,
) (change Change, differs bool) {
	return Change{Verb: Alter, Object: object, Fields: fieldsOf(object, differences, redact)}, len(differences) > 0
}

// byKey finds objects by their keys. Of those that are there twice Helm leaves the last one.
func byKey(objects []Object) map[Key]Object {
	found := make(map[Key]Object, len(objects))
	for _, object := range objects {
		found[object.Key()] = object
	}

	return found
}

// inOrder is the order in which Helm installs kinds: those that it knows, then the others by name.
func inOrder(a, b Object) int {
	first, second := a.Key(), b.Key()

	return cmp.Or(
		cmp.Compare(place(a.Kind), place(b.Kind)), cmp.Compare(first.Kind, second.Kind),
		cmp.Compare(first.Group, second.Group),
		cmp.Compare(first.Namespace, second.Namespace), cmp.Compare(first.Name, second.Name),
	)
}

func place(kind string) int {
	if place, known := places[kind]; known {
		return place
	}

	return len(places)
}

var places = maps.Collect(func(yield func(string, int) bool) {
	for i, kind := range releaseutil.InstallOrder {
		if !yield(kind, i) {
			return
		}
	}
})

func fieldsOf(after Object, differences []objects.Difference, redact func(string) string) []Field {
	var fields, noise []Field

	for _, difference := range differences {
		field := Field{Path: difference.Path, Old: difference.Found, New: difference.Wanted}

		switch {
		case after.Key().isSecret() && ofSecret(field.Path):
			field.Old, field.New = hide(field.Old), hide(field.New)
		case redact != nil:
			field.Old, field.New = redact(field.Old), redact(field.New)
		}

		if _, always := versionLabel(field.Path); always {
			noise = append(noise, field)
		} else {
			fields = append(fields, field)
		}
	}

	return append(fields, noise...)
}

const hidden = "(sensitive)"

// hide replaces a value.
func hide(value string) string {
	if value == "" {
		return ""
	}

	return hidden
}

func (k Key) isSecret() bool { return k.Group == "" && k.Kind == "Secret" }

const annotations = "metadata.annotations"

// ofSecret reports whether a path is in the secret part of a Secret. kubectl copies all of it to an annotation.
func ofSecret(path string) bool {
	top, _, _ := strings.Cut(path, ".")

	return top == "data" || top == "stringData" || path == annotations ||
		strings.HasPrefix(path, annotations+".kubectl.kubernetes.io/last-applied")
}

// versionLabel is the label of a path that changes with every version of a chart, by convention.
func versionLabel(path string) (string, bool) {
	for _, label := range []string{"helm.sh/chart", "app.kubernetes.io/version"} {
		if strings.HasSuffix(path, "labels."+label) {
			return label, true
		}
	}

	return "", false
}
