package direct

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/defaults"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// attributes are those of an object that a pass may change, by name, and those with such attributes in them.
type attributes map[string]*attribute

// attribute is what passes know of an attribute.
type attribute struct {
	of                  attr.Type
	typ                 tftypes.Type
	computed, writeOnly bool
	// fallback is the default; nil without one.
	fallback *tftypes.Value
	strings  []planmodifier.String
	objects  []planmodifier.Object
	// within are those of a nested object, or of each object of a map or list.
	within attributes
}

// attributesOf are the attributes that a pass may change, as affects tells.
func attributesOf(
	ctx context.Context, all map[string]schema.Attribute, affects func(*attribute) bool,
) attributes {
	out := attributes{}

	for name, one := range all {
		refuseUnknown(name, one)

		a := &attribute{
			of: one.GetType(), typ: one.GetType().TerraformType(ctx), computed: one.IsComputed(), writeOnly: one.IsWriteOnly(),
			fallback: fallbackOf(ctx, one),
		}

		switch one := one.(type) {
		case schema.StringAttribute:
			a.strings = one.PlanModifiers
		case schema.SingleNestedAttribute:
			a.objects, a.within = one.PlanModifiers, attributesOf(ctx, one.Attributes, affects)
		case schema.MapNestedAttribute:
			a.within = attributesOf(ctx, one.NestedObject.Attributes, affects)
		case schema.ListNestedAttribute:
			a.within = attributesOf(ctx, one.NestedObject.Attributes, affects)
		}

		if affects(a) || len(a.within) > 0 {
			out[name] = a
		}
	}

	return out
}

// known are the fields that passes know of each type of attribute, of those that concern them.
func known(a schema.Attribute) []string {
	switch a.(type) {
	case schema.StringAttribute:
		return []string{"Default", "PlanModifiers"}
	case schema.BoolAttribute, schema.ListAttribute:
		return []string{"Default"}
	case schema.SingleNestedAttribute:
		return []string{"PlanModifiers"}
	case schema.MapNestedAttribute, schema.ListNestedAttribute:
		return []string{"NestedObject"}
	default:
		return nil
	}
}

// refuseUnknown panics for an attribute with something that the passes do not know.
func refuseUnknown(name string, a schema.Attribute) {
	for _, field := range []string{"Default", "PlanModifiers", "NestedObject"} {
		of := reflect.ValueOf(a).FieldByName(field)
		if of.IsValid() && field == "NestedObject" && slices.Contains(known(a), field) {
			of = of.FieldByName("PlanModifiers")
		}

		if of.IsValid() && !of.IsZero() && (field == "NestedObject" || !slices.Contains(known(a), field)) {
			panic(fmt.Sprintf("direct: %s of %s, a %T, is unknown", field, name, a))
		}
	}
}

// fallbackOf is the default of an attribute; nil without one.
func fallbackOf(ctx context.Context, attribute schema.Attribute) *tftypes.Value {
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
