package tf

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
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
