package tf

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// OptionalString is a string of a resource.
func OptionalString(description string, checks ...validator.String) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: description, Validators: checks}
}

// OptionalOneOf is a string of a resource that is one of those allowed.
func OptionalOneOf(description string, allowed ...string) schema.StringAttribute {
	return OptionalString(description, stringvalidator.OneOf(allowed...))
}

// OptionalSecret is a secret string of a resource that is in neither state nor plan.
func OptionalSecret(description string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, WriteOnly: true, Sensitive: true,
		MarkdownDescription: description + WriteOnlyText}
}

// OptionalDuration is a duration of a resource.
func OptionalDuration(description string, checks ...validator.String) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, CustomType: DurationType{}, MarkdownDescription: description,
		Validators: checks}
}

// OptionalBool is a boolean of a resource.
func OptionalBool(description string) schema.BoolAttribute {
	return schema.BoolAttribute{Optional: true, MarkdownDescription: description}
}

// OptionalObject is a nested object of a resource.
func OptionalObject(description string, attributes map[string]schema.Attribute) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{Optional: true, MarkdownDescription: description, Attributes: attributes}
}

// OptionalSensitive is a string of a resource that outputs do not show.
func OptionalSensitive(description string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, Sensitive: true, MarkdownDescription: description}
}

// OptionalNumber is a number of a resource.
func OptionalNumber(description string, checks ...validator.Int64) schema.Int64Attribute {
	return schema.Int64Attribute{Optional: true, MarkdownDescription: description, Validators: checks}
}

// OptionalStrings is a list of strings of a resource.
func OptionalStrings(description string, checks ...validator.List) schema.ListAttribute {
	return schema.ListAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: description,
		Validators: checks}
}

// OptionalStringMap is a map of strings of a resource.
func OptionalStringMap(description string, checks ...validator.Map) schema.MapAttribute {
	return schema.MapAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: description,
		Validators: checks}
}

// OptionalObjectMap is a map of nested objects of a resource.
func OptionalObjectMap(description string, attributes map[string]schema.Attribute) schema.MapNestedAttribute {
	return schema.MapNestedAttribute{Optional: true, MarkdownDescription: description,
		NestedObject: schema.NestedAttributeObject{Attributes: attributes}}
}

// OptionalObjectList is a list of nested objects of a resource.
func OptionalObjectList(description string, attributes map[string]schema.Attribute) schema.ListNestedAttribute {
	return schema.ListNestedAttribute{Optional: true, MarkdownDescription: description,
		NestedObject: schema.NestedAttributeObject{Attributes: attributes}}
}

// RequiredString is a required string of a resource.
func RequiredString(description string, checks ...validator.String) schema.StringAttribute {
	return schema.StringAttribute{Required: true, MarkdownDescription: description, Validators: checks}
}

// RequiredNumber is a required number of a resource.
func RequiredNumber(description string) schema.Int64Attribute {
	return schema.Int64Attribute{Required: true, MarkdownDescription: description}
}

// RequiredStrings is a required list of strings of a resource.
func RequiredStrings(description string) schema.ListAttribute {
	return schema.ListAttribute{Required: true, ElementType: types.StringType, MarkdownDescription: description}
}

// RequiredObject is a required nested object of a resource.
func RequiredObject(description string, attributes map[string]schema.Attribute) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{Required: true, MarkdownDescription: description, Attributes: attributes}
}
