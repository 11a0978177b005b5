package machineconfig

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fieldpath"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/fields"
)

// unknownKind is the error of a document that no supported Talos has.
func unknownKind(field string, id identity) *FieldError {
	mistake := &FieldError{
		Field: field, Found: fmt.Sprintf("the document %s, whose kind no supported Talos version has", id),
		Allowed: "kinds of documents of Talos " + talosRange(), Err: ErrNotPatch,
		Fix: "check the spelling; documents of a newer Talos need its talos_version, and allow_untested = true",
	}

	kind := nearest(id.kind, fields.Kinds())

	switch {
	case kind == id.kind:
		mistake.Found = fmt.Sprintf("apiVersion %q of the document %s", id.apiVersion, id)
		mistake.Allowed, mistake.Fix = mainDocument, "write apiVersion: "+mainDocument
	case kind != "":
		mistake.Fix = "did you mean " + kind + "?"
	case id.apiVersion == "v1" || strings.Contains(id.apiVersion, "/"):
		mistake.Fix = "Kubernetes objects go into an inline manifest or an addon"
	}

	return mistake
}

// decodedDocument is how the loader (machinery 1.14, configloader) names the document that an error is about.
var decodedDocument = regexp.MustCompile(`error decoding document [^/]*/([^/]*)/`)

// suggestions are what was probably meant by unknown fields of the document that an error of the loader names.
func suggestions(loader string, paths []fieldpath.Path) []string {
	match := decodedDocument.FindStringSubmatch(loader)
	if match == nil {
		return nil
	}

	text := "apiVersion: v1alpha1\nkind: " + match[1]
	if match[1] == mainDocument {
		text = "machine: {}"
	}

	document, err := configloader.NewFromBytes([]byte(text), configloader.WithNoValidation())
	if err != nil {
		return nil
	}

	var found []string

	for _, path := range paths {
		if meant := meantBy(path, reflect.TypeOf(document.Documents()[0])); meant != nil {
			found = append(found, meant.String())
		}
	}

	return slices.Compact(found)
}

// meantBy is a path up to its first step that the type does not have, with the name that is most like it. Nil when no
// name is.
func meantBy(path fieldpath.Path, of reflect.Type) fieldpath.Path {
	for i, step := range path {
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}

		name, isName := step.(string)

		switch {
		case of.Kind() == reflect.Slice || of.Kind() == reflect.Map:
			of = of.Elem()
		case of.Kind() != reflect.Struct || !isName:
			return nil
		default:
			known := keysOf(of)

			next, ok := known[name]
			if !ok {
				meant := nearest(name, slices.Sorted(maps.Keys(known)))
				if meant == "" {
					return nil
				}

				return append(slices.Clone(path[:i]), meant)
			}

			of = next
		}
	}

	return nil
}

// keysOf are the keys of a mapping that is decoded into a type, with the types of their values.
func keysOf(of reflect.Type) map[string]reflect.Type {
	keys := map[string]reflect.Type{}

	for _, field := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); name != "" && name != "-" {
			keys[name] = field.Type
		}
	}

	return keys
}

// nearest is the name most similar to a word; empty when none is similar.
func nearest(word string, names []string) string {
	most := max(1, len(word)/4)
	found, least := "", most+1

	for _, name := range names {
		if distance := distanceOf(strings.ToLower(word), strings.ToLower(name)); name == word || distance < least {
			found, least = name, distance
		}

		if name == word {
			break
		}
	}

	return found
}

// distanceOf is how many letters have to be added, removed or replaced.
func distanceOf(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}

	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1

		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}

			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}

	return row[len(b)]
}
