package direct

import (
	"context"
	"fmt"
	"reflect"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/defaults"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// fallbacks are the attributes of an object that have a default, or attributes with one in them.
type fallbacks map[string]fallback

// fallback is such an attribute.
type fallback struct {
	// value is the default; nil without one.
	value *tftypes.Value
	// within are those of a nested object or, if many, of each object of a map or list.
	within fallbacks
	many   bool
}

func fallbacksOf(ctx context.Context, attributes map[string]schema.Attribute) fallbacks {
	out := fallbacks{}

	for name, attribute := range attributes {
		one := fallback{value: defaultOf(ctx, attribute)}

		switch a := attribute.(type) {
		case schema.SingleNestedAttribute:
			one.within = fallbacksOf(ctx, a.Attributes)
		case schema.MapNestedAttribute:
			one.within, one.many = fallbacksOf(ctx, a.NestedObject.Attributes), true
		case schema.ListNestedAttribute:
			one.within, one.many = fallbacksOf(ctx, a.NestedObject.Attributes), true
		case schema.SetNestedAttribute:
			panic("direct: the elements of a set have no key: " + name)
		}

		if one.value != nil || len(one.within) > 0 {
			out[name] = one
		}
	}

	return out
}

// defaultOf is the default of an attribute; nil without one.
func defaultOf(ctx context.Context, attribute schema.Attribute) *tftypes.Value {
	var value attr.Value

	switch a := attribute.(type) {
	case schema.StringAttribute:
		if a.Default != nil {
			var resp defaults.StringResponse

			a.Default.DefaultString(ctx, defaults.StringRequest{}, &resp)
			value = resp.PlanValue
		}
	case schema.BoolAttribute:
		if a.Default != nil {
			var resp defaults.BoolResponse

			a.Default.DefaultBool(ctx, defaults.BoolRequest{}, &resp)
			value = resp.PlanValue
		}
	case schema.ListAttribute:
		if a.Default != nil {
			var resp defaults.ListResponse

			a.Default.DefaultList(ctx, defaults.ListRequest{}, &resp)
			value = resp.PlanValue
		}
	default:
		if of := reflect.ValueOf(a).FieldByName("Default"); of.IsValid() && !of.IsZero() {
			panic(fmt.Sprintf("direct: the default of a %T is unknown", a))
		}
	}

	if value == nil {
		return nil
	}

	raw, err := value.ToTerraformValue(ctx)
	if err != nil {
		panic("direct: a default has no value: " + err.Error())
	}

	return &raw
}

// reached reports whether a state has the default of each attribute that the configuration leaves out. The state of
// an earlier release may have none, and an import may have read another value.
func (f fallbacks) reached(config, state tftypes.Value) bool {
	given, stored := parts(config), parts(state)

	for name, one := range f {
		if one.value != nil && given[name].IsNull() && !stored[name].Equal(*one.value) {
			return false
		}

		if !one.many {
			if !stored[name].IsNull() && !one.within.reached(given[name], stored[name]) {
				return false
			}

			continue
		}

		elements := parts(given[name])

		for key, element := range parts(stored[name]) {
			if !one.within.reached(elements[key], element) {
				return false
			}
		}
	}

	return true
}

// parts are the attributes of an object, or the elements of a map or list; none for a null or unknown value.
func parts(v tftypes.Value) map[string]tftypes.Value {
	if v.IsNull() || !v.IsKnown() {
		return nil
	}

	var named map[string]tftypes.Value
	if v.As(&named) == nil {
		return named
	}

	var listed []tftypes.Value
	if v.As(&listed) != nil {
		return nil
	}

	named = make(map[string]tftypes.Value, len(listed))
	for i, element := range listed {
		named[strconv.Itoa(i)] = element
	}

	return named
}
