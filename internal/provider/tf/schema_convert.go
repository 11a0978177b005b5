package tf

import (
	"fmt"

	action "github.com/hashicorp/terraform-plugin-framework/action/schema"
	datasource "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	ephemeral "github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	resource "github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// The cluster handle appears in resources, data sources and ephemeral resources,
// for which the framework has three families of types. It is described once, as
// attributes of a resource, and converted. Only the types that the handle has are
// known here.

// Unconverted is the message about an attribute of a type that is not converted.
func Unconverted(name string, a any) string {
	return fmt.Sprintf("provider: attribute %s of the cluster handle is a %T, which is not converted", name, a)
}

// ComputedAttributes are the same attributes, set by the provider.
func ComputedAttributes(in map[string]resource.Attribute) map[string]resource.Attribute {
	out := map[string]resource.Attribute{}

	for name, a := range in {
		switch a := a.(type) {
		case resource.StringAttribute:
			out[name] = resource.StringAttribute{Computed: true, Sensitive: a.Sensitive,
				MarkdownDescription: a.MarkdownDescription}
		case resource.BoolAttribute:
			out[name] = resource.BoolAttribute{Computed: true, Sensitive: a.Sensitive,
				MarkdownDescription: a.MarkdownDescription}
		case resource.ListAttribute:
			out[name] = resource.ListAttribute{Computed: true, Sensitive: a.Sensitive, ElementType: a.ElementType,
				MarkdownDescription: a.MarkdownDescription}
		case resource.MapAttribute:
			out[name] = resource.MapAttribute{Computed: true, Sensitive: a.Sensitive, ElementType: a.ElementType,
				MarkdownDescription: a.MarkdownDescription}
		case resource.SingleNestedAttribute:
			out[name] = resource.SingleNestedAttribute{
				Computed: true, Sensitive: a.Sensitive, MarkdownDescription: a.MarkdownDescription,
				Attributes: ComputedAttributes(a.Attributes),
			}
		case resource.MapNestedAttribute:
			out[name] = resource.MapNestedAttribute{
				Computed: true, Sensitive: a.Sensitive, MarkdownDescription: a.MarkdownDescription,
				NestedObject: resource.NestedAttributeObject{Attributes: ComputedAttributes(a.NestedObject.Attributes)},
			}
		case resource.ListNestedAttribute:
			out[name] = resource.ListNestedAttribute{
				Computed: true, Sensitive: a.Sensitive, MarkdownDescription: a.MarkdownDescription,
				NestedObject: resource.NestedAttributeObject{Attributes: ComputedAttributes(a.NestedObject.Attributes)},
			}
		default:
			panic(Unconverted(name, a))
		}
	}

	return out
}

// WriteOnlyAttributes are the same attributes, kept in neither state nor plan.
func WriteOnlyAttributes(in map[string]resource.Attribute) map[string]resource.Attribute {
	out := map[string]resource.Attribute{}

	for name, a := range in {
		switch a := a.(type) {
		case resource.StringAttribute:
			a.WriteOnly, a.PlanModifiers = true, nil
			out[name] = a
		case resource.BoolAttribute:
			a.WriteOnly, a.PlanModifiers = true, nil
			out[name] = a
		case resource.ListAttribute:
			a.WriteOnly, a.PlanModifiers = true, nil
			out[name] = a
		case resource.MapAttribute:
			a.WriteOnly, a.PlanModifiers = true, nil
			out[name] = a
		case resource.SingleNestedAttribute:
			a.WriteOnly, a.PlanModifiers, a.Attributes = true, nil, WriteOnlyAttributes(a.Attributes)
			out[name] = a
		case resource.MapNestedAttribute:
			a.WriteOnly, a.PlanModifiers = true, nil
			a.NestedObject.Attributes = WriteOnlyAttributes(a.NestedObject.Attributes)
			out[name] = a
		case resource.ListNestedAttribute:
			a.WriteOnly, a.PlanModifiers = true, nil
			a.NestedObject.Attributes = WriteOnlyAttributes(a.NestedObject.Attributes)
			out[name] = a
		default:
			panic(Unconverted(name, a))
		}
	}

	return out
}

// EphemeralAttributes are the same attributes on an ephemeral resource.
func EphemeralAttributes(in map[string]resource.Attribute) map[string]ephemeral.Attribute {
	out := map[string]ephemeral.Attribute{}

	for name, a := range in {
		switch a := a.(type) {
		case resource.StringAttribute:
			out[name] = ephemeral.StringAttribute{
				Required: a.Required, Optional: a.Optional, Sensitive: a.Sensitive, Validators: a.Validators,
				MarkdownDescription: a.MarkdownDescription,
			}
		case resource.BoolAttribute:
			out[name] = ephemeral.BoolAttribute{Required: a.Required, Optional: a.Optional, Sensitive: a.Sensitive,
				MarkdownDescription: a.MarkdownDescription}
		case resource.ListAttribute:
			out[name] = ephemeral.ListAttribute{
				Required: a.Required, Optional: a.Optional, Sensitive: a.Sensitive, ElementType: a.ElementType,
				Validators: a.Validators, MarkdownDescription: a.MarkdownDescription,
			}
		case resource.MapAttribute:
			out[name] = ephemeral.MapAttribute{
				Required: a.Required, Optional: a.Optional, Sensitive: a.Sensitive, ElementType: a.ElementType,
				Validators: a.Validators, MarkdownDescription: a.MarkdownDescription,
			}
		case resource.SingleNestedAttribute:
			out[name] = ephemeral.SingleNestedAttribute{
				Required: a.Required, Optional: a.Optional, Sensitive: a.Sensitive, MarkdownDescription: a.MarkdownDescription,
				Attributes: EphemeralAttributes(a.Attributes),
			}
		case resource.MapNestedAttribute:
			out[name] = ephemeral.MapNestedAttribute{
				Required: a.Required, Optional: a.Optional, Sensitive: a.Sensitive, MarkdownDescription: a.MarkdownDescription,
				NestedObject: ephemeral.NestedAttributeObject{Attributes: EphemeralAttributes(a.NestedObject.Attributes)},
			}
		case resource.ListNestedAttribute:
			out[name] = ephemeral.ListNestedAttribute{
				Required: a.Required, Optional: a.Optional, Sensitive: a.Sensitive, MarkdownDescription: a.MarkdownDescription,
				NestedObject: ephemeral.NestedAttributeObject{Attributes: EphemeralAttributes(a.NestedObject.Attributes)},
			}
		default:
			panic(Unconverted(name, a))
		}
	}

	return out
}

// DataSourceAttributes are the same attributes on a data source.
func DataSourceAttributes(in map[string]resource.Attribute) map[string]datasource.Attribute {
	out := map[string]datasource.Attribute{}

	for name, a := range in {
		switch a := a.(type) {
		case resource.StringAttribute:
			out[name] = datasource.StringAttribute{
				Required: a.Required, Optional: a.Optional, Sensitive: a.Sensitive, Validators: a.Validators,
				MarkdownDescription: a.MarkdownDescription,
			}
		case resource.BoolAttribute:
			out[name] = datasource.BoolAttribute{Required: a.Required, Optional: a.Optional, Sensitive: a.Sensitive,
				MarkdownDescription: a.MarkdownDescription}
		case resource.ListAttribute:
			out[name] = datasource.ListAttribute{
				Required: a.Required, Optional: a.Optional, Sensitive: a.Sensitive, ElementType: a.ElementType,
				Validators: a.Validators, MarkdownDescription: a.MarkdownDescription,
			}
		case resource.MapAttribute:
			out[name] = datasource.MapAttribute{
				Required: a.Required, Optional: a.Optional, Sensitive: a.Sensitive, ElementType: a.ElementType,
				Validators: a.Validators, MarkdownDescription: a.MarkdownDescription,
			}
		case resource.SingleNestedAttribute:
			out[name] = datasource.SingleNestedAttribute{
				Required: a.Required, Optional: a.Optional, Sensitive: a.Sensitive, MarkdownDescription: a.MarkdownDescription,
				Attributes: DataSourceAttributes(a.Attributes),
			}
		case resource.MapNestedAttribute:
			out[name] = datasource.MapNestedAttribute{
				Required: a.Required, Optional: a.Optional, Sensitive: a.Sensitive, MarkdownDescription: a.MarkdownDescription,
				NestedObject: datasource.NestedAttributeObject{Attributes: DataSourceAttributes(a.NestedObject.Attributes)},
			}
		case resource.ListNestedAttribute:
			out[name] = datasource.ListNestedAttribute{
				Required: a.Required, Optional: a.Optional, Sensitive: a.Sensitive, MarkdownDescription: a.MarkdownDescription,
				NestedObject: datasource.NestedAttributeObject{Attributes: DataSourceAttributes(a.NestedObject.Attributes)},
			}
		default:
			panic(Unconverted(name, a))
		}
	}

	return out
}

// ActionAttributes are the same attributes on an action, which has none that are sensitive, and whose
// write-only ones no configuration may give (terraform-plugin-framework 1.19, ValidateActionConfig).
func ActionAttributes(in map[string]resource.Attribute) map[string]action.Attribute {
	out := map[string]action.Attribute{}

	for name, a := range in {
		switch a := a.(type) {
		case resource.StringAttribute:
			out[name] = action.StringAttribute{Required: a.Required, Optional: a.Optional,
				Validators: a.Validators, MarkdownDescription: a.MarkdownDescription}
		case resource.BoolAttribute:
			out[name] = action.BoolAttribute{Required: a.Required, Optional: a.Optional,
				MarkdownDescription: a.MarkdownDescription}
		case resource.ListAttribute:
			out[name] = action.ListAttribute{Required: a.Required, Optional: a.Optional,
				ElementType: a.ElementType, Validators: a.Validators, MarkdownDescription: a.MarkdownDescription}
		case resource.MapAttribute:
			out[name] = action.MapAttribute{Required: a.Required, Optional: a.Optional,
				ElementType: a.ElementType, Validators: a.Validators, MarkdownDescription: a.MarkdownDescription}
		case resource.SingleNestedAttribute:
			out[name] = action.SingleNestedAttribute{Required: a.Required, Optional: a.Optional,
				MarkdownDescription: a.MarkdownDescription, Attributes: ActionAttributes(a.Attributes)}
		case resource.MapNestedAttribute:
			out[name] = action.MapNestedAttribute{Required: a.Required, Optional: a.Optional,
				MarkdownDescription: a.MarkdownDescription,
				NestedObject:        action.NestedAttributeObject{Attributes: ActionAttributes(a.NestedObject.Attributes)}}
		case resource.ListNestedAttribute:
			out[name] = action.ListNestedAttribute{Required: a.Required, Optional: a.Optional,
				MarkdownDescription: a.MarkdownDescription,
				NestedObject:        action.NestedAttributeObject{Attributes: ActionAttributes(a.NestedObject.Attributes)}}
		default:
			panic(Unconverted(name, a))
		}
	}

	return out
}
