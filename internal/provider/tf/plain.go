package tf

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
)

// Plain values are those of Go: strings, booleans, numbers, lists, maps, and structs that have a field for each
// attribute of an object. A field has the name of its attribute without the underscores, such as KMSEndpoint for
// kms_endpoint. A pointer distinguishes a missing value, which is nil, from an empty one.

// Into reads a value into the plain one that into points to, which stays empty when the value is null or unknown. It
// leaves out objects of maps that are null or unknown as a whole.
func (r *Reader) Into(v attr.Value, into any) { r.into(v, reflect.ValueOf(into).Elem()) }

func (r *Reader) into(v attr.Value, to reflect.Value) {
	r.Unknown = r.Unknown || v.IsUnknown()

	if v.IsNull() || v.IsUnknown() {
		return
	}

	if to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}

	switch v := v.(type) {
	case types.String:
		to.SetString(v.ValueString())
	case types.Bool:
		to.SetBool(v.ValueBool())
	case types.Int64:
		to.SetInt(v.ValueInt64())
	case types.List:
		elements := v.Elements()
		if made := reflect.MakeSlice(to.Type(), len(elements), len(elements)); !saysNothing(made) {
			to.Set(made)
		}

		for i, element := range elements {
			r.into(element, to.Index(i))
		}
	case types.Map:
		r.intoMap(v, to)
	case types.Object:
		r.IntoFields(v.Attributes(), to.Addr().Interface())
	default:
		panic(fmt.Sprintf("no plain value of a %T", v)) // a test reads each setting
	}
}

// IntoFields reads attributes into the fields of the struct that into points to.
func (r *Reader) IntoFields(attributes map[string]attr.Value, into any) {
	for name, value := range attributes {
		r.into(value, PlainField(reflect.ValueOf(into).Elem(), name))
	}
}

func (r *Reader) intoMap(v types.Map, to reflect.Value) {
	to.Set(reflect.MakeMap(to.Type()))

	for key, element := range v.Elements() {
		if _, object := element.(types.Object); object && (element.IsNull() || element.IsUnknown()) {
			r.Unknown = r.Unknown || element.IsUnknown()

			continue
		}

		one := reflect.New(to.Type().Elem()).Elem()
		r.into(element, one)
		to.SetMapIndex(reflect.ValueOf(key), one)
	}
}

// ValueOf converts a plain value to one of the framework, the reverse of Into. An empty value is null, unless it is
// an element of a list or a map, or has a pointer.
func ValueOf[V attr.Value](typ attr.Type, plain any) V {
	return valueOf(typ, reflect.ValueOf(plain), false).(V) //nolint:forcetypeassert,errcheck // the caller names both
}

func valueOf(typ attr.Type, of reflect.Value, given bool) attr.Value {
	if of.Kind() == reflect.Pointer && !of.IsNil() {
		return valueOf(typ, of.Elem(), true)
	}

	if !given && saysNothing(of) {
		return Null(typ)
	}

	switch typ := typ.(type) {
	case basetypes.StringType:
		return types.StringValue(of.String())
	case basetypes.BoolType:
		return types.BoolValue(of.Bool())
	case basetypes.Int64Type:
		return types.Int64Value(of.Int())
	case types.ListType:
		values := make([]attr.Value, of.Len())
		for i := range values {
			values[i] = valueOf(typ.ElemType, of.Index(i), true)
		}

		return types.ListValueMust(typ.ElemType, values)
	case types.MapType:
		values := make(map[string]attr.Value, of.Len())
		for _, key := range of.MapKeys() {
			values[key.String()] = valueOf(typ.ElemType, of.MapIndex(key), true)
		}

		return types.MapValueMust(typ.ElemType, values)
	case types.ObjectType:
		values := make(map[string]attr.Value, len(typ.AttrTypes))
		for name, inner := range typ.AttrTypes {
			values[name] = valueOf(inner, PlainField(of, name), false)
		}

		return types.ObjectValueMust(typ.AttrTypes, values)
	default:
		panic(fmt.Sprintf("no plain value of a %s", typ)) // a test writes each setting
	}
}

// saysNothing reports whether a plain value is empty. An empty list of numbers is not: it removes a default.
func saysNothing(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Map:
		return v.Len() == 0
	case reflect.Slice:
		return v.Len() == 0 && (v.IsNil() || v.Type().Elem().Kind() != reflect.Int)
	default:
		return v.IsZero()
	}
}

// plainFields are the indexes of the fields of structs by their names in lower case. It lives as long as the
// process.
var plainFields sync.Map

// PlainField is the field of a struct for an attribute.
func PlainField(of reflect.Value, name string) reflect.Value {
	known, ok := plainFields.Load(of.Type())
	if !ok {
		fields := map[string]int{}
		for i := range of.NumField() {
			fields[strings.ToLower(of.Type().Field(i).Name)] = i
		}

		known, _ = plainFields.LoadOrStore(of.Type(), fields)
	}

	fields, _ := known.(map[string]int)

	at, ok := fields[strings.ReplaceAll(name, "_", "")]
	if !ok {
		panic(fmt.Sprintf("%s has no field for %s", of.Type(), name)) // a test looks for each attribute
	}

	return of.Field(at)
}
