package tf

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// OptionalText is a text of a resource that may be left out.
func OptionalText(description string, checks ...validator.String) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: description, Validators: checks}
}

// OptionalChoice is a text that may be left out, and is one of those that are allowed.
func OptionalChoice(description string, allowed ...string) schema.StringAttribute {
	return OptionalText(description, stringvalidator.OneOf(allowed...))
}

// OptionalTruth is a truth of a resource that may be left out.
func OptionalTruth(description string) schema.BoolAttribute {
	return schema.BoolAttribute{Optional: true, MarkdownDescription: description}
}

// OptionalDuration is a duration of a resource that may be left out.
func OptionalDuration(description string, checks ...validator.String) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, CustomType: DurationType{}, MarkdownDescription: description,
		Validators: checks}
}

// OptionalObject is attributes of a resource that may be left out together.
func OptionalObject(description string, attributes map[string]schema.Attribute) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{Optional: true, MarkdownDescription: description, Attributes: attributes}
}
