package tf

import (
	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// ComputedString is a string that the provider computes.
func ComputedString(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

// ComputedNumber is a number that the provider computes.
func ComputedNumber(description string) schema.Int64Attribute {
	return schema.Int64Attribute{Computed: true, MarkdownDescription: description}
}

// ComputedTime is a time that the provider computes.
func ComputedTime(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, CustomType: timetypes.RFC3339Type{}, MarkdownDescription: description}
}

// ComputedStrings is a list of strings that the provider computes.
func ComputedStrings(description string) schema.ListAttribute {
	return schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: description}
}

// ComputedSecret is a secret string that the provider computes.
func ComputedSecret(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, Sensitive: true, MarkdownDescription: description}
}

// ComputedBool is a boolean that the provider computes.
func ComputedBool(description string) schema.BoolAttribute {
	return schema.BoolAttribute{Computed: true, MarkdownDescription: description}
}

// ComputedStringMap is a map of strings that the provider computes.
func ComputedStringMap(description string) schema.MapAttribute {
	return schema.MapAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: description}
}

// ComputedNumberMap is a map of numbers that the provider computes.
func ComputedNumberMap(description string) schema.MapAttribute {
	return schema.MapAttribute{Computed: true, ElementType: types.Int64Type, MarkdownDescription: description}
}

// ComputedObjectMap is a map of nested objects that the provider computes.
func ComputedObjectMap(description string, attributes map[string]schema.Attribute) schema.MapNestedAttribute {
	return schema.MapNestedAttribute{Computed: true, MarkdownDescription: description,
		NestedObject: schema.NestedAttributeObject{Attributes: attributes}}
}

// ComputedObjectList is a list of nested objects that the provider computes.
func ComputedObjectList(description string, attributes map[string]schema.Attribute) schema.ListNestedAttribute {
	return schema.ListNestedAttribute{Computed: true, MarkdownDescription: description,
		NestedObject: schema.NestedAttributeObject{Attributes: attributes}}
}
