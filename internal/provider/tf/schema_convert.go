package tf

import (
	"fmt"
	"reflect"
	"slices"

	action "github.com/hashicorp/terraform-plugin-framework/action/schema"
	datasource "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	ephemeral "github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	list "github.com/hashicorp/terraform-plugin-framework/list/schema"
	provider "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	resource "github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// The framework has a family of attribute types for each of resources, data sources, ephemeral resources, actions,
// lists and the provider block. Shared attributes are described once, as attributes of a resource, and converted.
// The types of the families have the same names, and the same fields as far as they have them.

// Unconverted is the message about an attribute of a type that is not converted.
func Unconverted(name string, a any) string {
	return fmt.Sprintf("provider: attribute %s is a %T, which is not converted", name, a)
}

// converted are the same attributes in another family. family has one attribute of each type.
func converted[A any](in map[string]resource.Attribute, family ...A) map[string]A {
	out := make(map[string]A, len(in))

	for name, a := range in {
		i := slices.IndexFunc(family, func(to A) bool { return reflect.TypeOf(to).Name() == reflect.TypeOf(a).Name() })
		if i < 0 {
			panic(Unconverted(name, a))
		}

		to := reflect.New(reflect.TypeOf(family[i])).Elem()
		convert(to, reflect.ValueOf(a), family)
		out[name], _ = to.Interface().(A)
	}

	return out
}

// convert fills in an attribute, or the object of a nested one. Only resources have write-only attributes, and
// defaults, for which an attribute has to be computed.
func convert[A any](to, from reflect.Value, family []A) {
	for i := range to.NumField() {
		name := to.Type().Field(i).Name
		value := from.FieldByName(name)

		switch name {
		case "Attributes":
			nested, _ := value.Interface().(map[string]resource.Attribute)
			value = reflect.ValueOf(converted(nested, family...))
		case "NestedObject":
			convert(to.Field(i), value, family)

			continue
		case "WriteOnly":
			continue
		case "Computed":
			value = reflect.ValueOf(value.Bool() && from.FieldByName("Default").IsZero())
		}

		to.Field(i).Set(value)
	}
}

// EphemeralAttributes are the same attributes on an ephemeral resource.
func EphemeralAttributes(in map[string]resource.Attribute) map[string]ephemeral.Attribute {
	return converted[ephemeral.Attribute](in, ephemeral.StringAttribute{}, ephemeral.BoolAttribute{},
		ephemeral.Int64Attribute{}, ephemeral.ListAttribute{}, ephemeral.MapAttribute{}, ephemeral.SingleNestedAttribute{},
		ephemeral.MapNestedAttribute{}, ephemeral.ListNestedAttribute{})
}

// DataSourceAttributes are the same attributes on a data source.
func DataSourceAttributes(in map[string]resource.Attribute) map[string]datasource.Attribute {
	return converted[datasource.Attribute](in, datasource.StringAttribute{}, datasource.BoolAttribute{},
		datasource.Int64Attribute{}, datasource.ListAttribute{}, datasource.MapAttribute{},
		datasource.SingleNestedAttribute{}, datasource.MapNestedAttribute{}, datasource.ListNestedAttribute{})
}

// ActionAttributes are the same attributes on an action. None of them is sensitive, and no configuration may set the
// write-only ones (terraform-plugin-framework 1.19, ValidateActionConfig).
func ActionAttributes(in map[string]resource.Attribute) map[string]action.Attribute {
	return converted[action.Attribute](in, action.StringAttribute{}, action.BoolAttribute{}, action.ListAttribute{},
		action.MapAttribute{}, action.SingleNestedAttribute{}, action.MapNestedAttribute{}, action.ListNestedAttribute{})
}

// ListAttributes are the same attributes on a list resource, none of which is sensitive or write-only.
func ListAttributes(in map[string]resource.Attribute) map[string]list.Attribute {
	return converted[list.Attribute](in, list.StringAttribute{}, list.BoolAttribute{}, list.Int64Attribute{},
		list.ListAttribute{}, list.MapAttribute{}, list.SingleNestedAttribute{})
}

// ProviderAttributes are the same attributes in the provider block.
func ProviderAttributes(in map[string]resource.Attribute) map[string]provider.Attribute {
	return converted[provider.Attribute](in, provider.StringAttribute{}, provider.BoolAttribute{},
		provider.Int64Attribute{}, provider.ListAttribute{}, provider.MapAttribute{}, provider.SingleNestedAttribute{},
		provider.MapNestedAttribute{}, provider.ListNestedAttribute{})
}

// copied is a copy of an attribute, whose fields edit changes.
func copied(a resource.Attribute, edit func(a reflect.Value)) resource.Attribute {
	one := reflect.New(reflect.TypeOf(a)).Elem()
	one.Set(reflect.ValueOf(a))
	edit(one)

	out, _ := one.Interface().(resource.Attribute)

	return out
}

// edited are copies of attributes, nested ones included, whose fields edit changes.
func edited(in map[string]resource.Attribute, edit func(a reflect.Value)) map[string]resource.Attribute {
	out := make(map[string]resource.Attribute, len(in))

	for name, a := range in {
		out[name] = copied(a, func(one reflect.Value) {
			edit(one)

			holder := one
			if object := one.FieldByName("NestedObject"); object.IsValid() {
				holder = object
			}

			if nested := holder.FieldByName("Attributes"); nested.IsValid() {
				inner, _ := nested.Interface().(map[string]resource.Attribute)
				nested.Set(reflect.ValueOf(edited(inner, edit)))
			}
		})
	}

	return out
}

// ComputedAttributes are the same attributes, set by the provider.
func ComputedAttributes(in map[string]resource.Attribute) map[string]resource.Attribute {
	return edited(in, func(a reflect.Value) {
		for _, name := range []string{"CustomType", "Required", "Optional", "WriteOnly", "Validators", "PlanModifiers",
			"Default"} {
			a.FieldByName(name).SetZero()
		}

		a.FieldByName("Computed").SetBool(true)
	})
}

// WriteOnlyAttributes are the same attributes, kept in neither state nor plan.
func WriteOnlyAttributes(in map[string]resource.Attribute) map[string]resource.Attribute {
	return edited(in, func(a reflect.Value) {
		a.FieldByName("PlanModifiers").SetZero()
		a.FieldByName("WriteOnly").SetBool(true)
	})
}
