package places

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
)

// Value is where the documents of a configuration say something, in the form that they have: a pointer to the field,
// whose type is T in both. It is nil where the section around the field is missing.
func Value[T any](documents []config.Document, f Fact) *T { return value[T](documents, f, false) }

// Make is Value with the sections around the field, which are made where they are missing.
func Make[T any](documents []config.Document, f Fact) *T { return value[T](documents, f, true) }

// Document is the first document of a type.
func Document[D config.Document](documents []config.Document) (found D, ok bool) {
	for _, document := range documents {
		if found, ok = document.(D); ok {
			return found, true
		}
	}

	return found, false
}

func value[T any](documents []config.Document, f Fact, makes bool) *T {
	find := func(kind string) int {
		return slices.IndexFunc(documents, func(d config.Document) bool { return d.Kind() == cmp.Or(kind, v1alpha1.Version) })
	}

	at := f.In(func(kind string) bool { return find(kind) >= 0 })

	i := find(at.Kind)
	if i < 0 {
		return nil
	}

	field := Field(documents[i], at.Path, makes)
	if !field.IsValid() {
		return nil
	}

	return field.Addr().Interface().(*T) //nolint:forcetypeassert,errcheck // a test holds that both forms have T
}

// Field is the field of a document at a path, by the names in YAML. It is not valid where the section around it is
// missing, unless it makes that.
func Field(document config.Document, path []string, makes bool) reflect.Value {
	at := reflect.ValueOf(document)

	for _, key := range path {
		if at.Kind() == reflect.Pointer {
			if at.IsNil() && !makes {
				return reflect.Value{}
			}

			if at.IsNil() {
				at.Set(reflect.New(at.Type().Elem()))
			}

			at = at.Elem()
		}

		at = at.Field(fieldNamed(at.Type(), key))
	}

	return at
}

// fieldNamed is the number of the field of a section that a key of YAML is.
func fieldNamed(section reflect.Type, key string) int {
	for i := range section.NumField() {
		if name, _, _ := strings.Cut(section.Field(i).Tag.Get("yaml"), ","); name == key {
			return i
		}
	}

	panic(section.String() + " has no field " + key) // a test looks for each place
}
