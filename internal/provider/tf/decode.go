package tf

import (
	"reflect"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/types"
)

// decode puts the attributes of an object into the fields of a struct with these tags; ok is false when one is
// missing or has another type. The framework does the same with more checks and conversions, and (1.19,
// reflect.isValidFieldName) compiles a pattern for each field of each object: tens of thousands for a thousand
// machines.
func decode[T any](v types.Object) (out T, ok bool) {
	target := reflect.ValueOf(&out).Elem()
	attributes, fields := v.Attributes(), FieldsOf(target.Type())

	if len(attributes) != len(fields) {
		return out, false
	}

	for name, at := range fields {
		value, field := reflect.ValueOf(attributes[name]), target.FieldByIndex(at)
		if !value.IsValid() || value.Type() != field.Type() {
			return *new(T), false
		}

		field.Set(value)
	}

	return out, true
}

// structs are the fields of structs by their tags, with their index. It lives as long as the process.
var structs sync.Map

// FieldsOf are the fields of a struct by their tags, with their index.
func FieldsOf(of reflect.Type) map[string][]int {
	if known, ok := structs.Load(of); ok {
		if fields, ok := known.(map[string][]int); ok {
			return fields
		}
	}

	fields := map[string][]int{}

	for _, field := range reflect.VisibleFields(of) {
		if tag := field.Tag.Get("tfsdk"); tag != "" && tag != "-" {
			fields[tag] = field.Index
		}
	}

	structs.Store(of, fields)

	return fields
}
