package places

import (
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

func value[T any](documents []config.Document, f Fact, missing bool) *T {
	has := func(kind string) bool {
		return slices.ContainsFunc(documents, func(d config.Document) bool { return d.Kind() == kind })
	}

	at := f.In(has)

	for _, document := range documents {
		if _, isMain := document.(*v1alpha1.Config); isMain != (at.Kind == "") || !isMain && document.Kind() != at.Kind {
			continue
		}

		if field := fieldOf(document, at.Path, missing); field.IsValid() {
			return field.Addr().Interface().(*T) //nolint:forcetypeassert // a test holds that both forms have T
		}
	}

	return nil
}

// fieldOf is the field of a document at a path, by the names in YAML.
func fieldOf(document config.Document, path []string, missing bool) reflect.Value {
	at := reflect.ValueOf(document)

	for _, key := range path {
		if at.Kind() == reflect.Pointer {
			if at.IsNil() && !missing {
				return reflect.Value{}
			}

			if at.IsNil() {
				at.Set(reflect.New(at.Type().Elem()))
			}

			at = at.Elem()
		}

		at = at.FieldByIndex(fieldNamed(at.Type(), key).Index)
	}

	return at
}

func fieldNamed(section reflect.Type, key string) reflect.StructField {
	fields := reflect.VisibleFields(section)

	return fields[slices.IndexFunc(fields, func(field reflect.StructField) bool {
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")

		return name == key
	})]
}
