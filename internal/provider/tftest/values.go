package tftest

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// FieldsOf are the attributes of an object, to be changed.
func FieldsOf(t *testing.T, v tftypes.Value) map[string]tftypes.Value {
	t.Helper()

	var fields map[string]tftypes.Value
	if err := v.As(&fields); err != nil {
		t.Fatal(err)
	}

	out := map[string]tftypes.Value{}
	for name, field := range fields {
		out[name] = field
	}

	return out
}

// Decoded is a value in an answer of the provider; a missing one is null.
func Decoded(t *testing.T, typ tftypes.Type, v *tfprotov6.DynamicValue) tftypes.Value {
	t.Helper()

	if v == nil {
		return tftypes.NewValue(typ, nil)
	}

	value, err := v.Unmarshal(typ)
	if err != nil {
		t.Fatal(err)
	}

	return value
}

// Text is an attribute as text; "" for null and "unknown" for unknown.
func Text(t *testing.T, object tftypes.Value, name string) string {
	t.Helper()

	v := FieldsOf(t, object)[name]

	switch {
	case !v.IsKnown():
		return "unknown"
	case v.IsNull():
		return ""
	case v.Type().Is(tftypes.Number):
		return fmt.Sprint(Number(t, v))
	default:
		var s string
		if err := v.As(&s); err != nil {
			t.Fatal(err)
		}

		return s
	}
}

// Number is a whole number.
func Number(t *testing.T, v tftypes.Value) int64 {
	t.Helper()

	var n *big.Float
	if err := v.As(&n); err != nil {
		t.Fatal(err)
	}

	i, _ := n.Int64()

	return i
}

// Plain is a value in the form of a configuration.
func Plain(t *testing.T, v tftypes.Value) any {
	t.Helper()

	if v.IsNull() || !v.IsKnown() {
		return nil
	}

	switch typ := v.Type(); {
	case typ.Is(tftypes.String):
		var s string
		Must(t, v.As(&s))

		return s
	case typ.Is(tftypes.Bool):
		var b bool
		Must(t, v.As(&b))

		return b
	case typ.Is(tftypes.Number):
		return Number(t, v)
	case typ.Is(tftypes.List{}), typ.Is(tftypes.Set{}):
		var list []tftypes.Value
		Must(t, v.As(&list))

		out := []any{}
		for _, e := range list {
			out = append(out, Plain(t, e))
		}

		return out
	default:
		out := Config{}
		for name, field := range FieldsOf(t, v) {
			out[name] = Plain(t, field)
		}

		return out
	}
}

// Without removes a key from a configuration and returns it; path is the keys to it.
func Without(base Config, path ...string) Config {
	at := base
	for _, key := range path[:len(path)-1] {
		at, _ = at[key].(Config)
	}

	delete(at, path[len(path)-1])

	return base
}

// TextsIn are texts of a state by name; those that are null are empty.
func TextsIn(t *testing.T, state tftypes.Value, names ...string) map[string]string {
	t.Helper()

	got := map[string]string{}

	for _, name := range names {
		var text *string
		Must(t, AttributeOf(t, state, name).As(&text))

		if text != nil {
			got[name] = *text
		}
	}

	return got
}

// AttributeOf reads an attribute of an object.
func AttributeOf(t *testing.T, v tftypes.Value, name string) tftypes.Value {
	t.Helper()

	got, _, err := tftypes.WalkAttributePath(v, tftypes.NewAttributePath().WithAttributeName(name))
	if err != nil {
		t.Fatal(err)
	}

	value, ok := got.(tftypes.Value)
	if !ok {
		t.Fatalf("%s is a %T", name, got)
	}

	return value
}

// TextsOf are the texts of a list.
func TextsOf(t *testing.T, v tftypes.Value) []string {
	t.Helper()

	if !v.IsKnown() {
		return []string{"(known after apply)"}
	}

	var elements []tftypes.Value
	if err := v.As(&elements); err != nil {
		t.Fatal(err)
	}

	out := []string{}

	for _, e := range elements {
		var s string
		if err := e.As(&s); err != nil {
			t.Fatal(err)
		}

		out = append(out, s)
	}

	return out
}

// Config is an object or a map of a configuration; values are such maps, slices for lists, strings, booleans, nil,
// values of tftypes, and Unknown.
type Config = map[string]any

// Unknown stands for a value that is known after apply.
type Unknown struct{}

// ValueOf converts a configuration to a type; missing values are null.
func ValueOf(t *testing.T, typ tftypes.Type, v any) tftypes.Value {
	t.Helper()

	switch v := v.(type) {
	case nil:
		return tftypes.NewValue(typ, nil)
	case Unknown:
		return tftypes.NewValue(typ, tftypes.UnknownValue)
	case tftypes.Value:
		return convertedTo(t, typ, v)
	case Config:
		return objectOrMap(t, typ, v)
	case []any:
		list, ok := typ.(tftypes.List)
		if !ok {
			t.Fatalf("%v is not a %s", v, typ)
		}

		elements := make([]tftypes.Value, len(v))
		for i, e := range v {
			elements[i] = ValueOf(t, list.ElementType, e)
		}

		return tftypes.NewValue(typ, elements)
	default:
		return tftypes.NewValue(typ, v)
	}
}

// convertedTo is a value in another type, as for a reference: it drops what the type does not have.
func convertedTo(t *testing.T, typ tftypes.Type, v tftypes.Value) tftypes.Value {
	t.Helper()

	object, ok := typ.(tftypes.Object)

	switch {
	case v.Type().Equal(typ) || !ok:
		return v
	case !v.IsKnown():
		return tftypes.NewValue(typ, tftypes.UnknownValue)
	case v.IsNull():
		return tftypes.NewValue(typ, nil)
	}

	fields := map[string]tftypes.Value{}
	has := FieldsOf(t, v)

	for name, attribute := range object.AttributeTypes {
		fields[name] = tftypes.NewValue(attribute, nil)
		if field, ok := has[name]; ok {
			fields[name] = convertedTo(t, attribute, field)
		}
	}

	return tftypes.NewValue(typ, fields)
}

func objectOrMap(t *testing.T, typ tftypes.Type, v Config) tftypes.Value {
	t.Helper()

	values := map[string]tftypes.Value{}

	switch typ := typ.(type) {
	case tftypes.Object:
		for name, attribute := range typ.AttributeTypes {
			values[name] = ValueOf(t, attribute, v[name])
		}

		for name := range v {
			if _, ok := typ.AttributeTypes[name]; !ok {
				t.Fatalf("there is no attribute %s", name)
			}
		}
	case tftypes.Map:
		for name, e := range v {
			values[name] = ValueOf(t, typ.ElementType, e)
		}
	default:
		t.Fatalf("%v is not a %s", v, typ)
	}

	return tftypes.NewValue(typ, values)
}

// Dynamic is a value in the form of a request.
func Dynamic(t *testing.T, v tftypes.Value) *tfprotov6.DynamicValue {
	t.Helper()

	d, err := tfprotov6.NewDynamicValue(v.Type(), v)
	if err != nil {
		t.Fatal(err)
	}

	return &d
}

// IsWriteOnly reports whether a path is that of a write-only attribute, or in one.
func IsWriteOnly(at *tftypes.AttributePath) bool {
	return slices.ContainsFunc(at.Steps(), func(step tftypes.AttributePathStep) bool {
		name, ok := step.(tftypes.AttributeName)

		return ok && strings.HasSuffix(string(name), "_wo")
	})
}

// With changes one value of a configuration and returns it; path is the keys to it.
func With(base Config, value any, path ...string) Config {
	at := base
	for _, key := range path[:len(path)-1] {
		next, ok := at[key].(Config)
		if !ok {
			next = Config{}
			at[key] = next
		}

		at = next
	}

	at[path[len(path)-1]] = value

	return base
}
