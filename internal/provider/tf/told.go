package tf

import (
	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	resource "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Told is an attribute that is read only.
func Told(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

// ToldByResource is Told for a resource.
func ToldByResource(description string) resource.StringAttribute {
	return resource.StringAttribute{Computed: true, MarkdownDescription: description}
}

// ToldNumber is a number of a resource that is read only.
func ToldNumber(description string) resource.Int64Attribute {
	return resource.Int64Attribute{Computed: true, MarkdownDescription: description}
}

// ToldTime is a time of a resource that is read only.
func ToldTime(description string) resource.StringAttribute {
	return resource.StringAttribute{Computed: true, CustomType: timetypes.RFC3339Type{}, MarkdownDescription: description}
}

// ToldStrings is a list of strings of a resource that is read only.
func ToldStrings(description string) resource.ListAttribute {
	return resource.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: description}
}

// ToldSecret is a secret string of a resource that is read only.
func ToldSecret(description string) resource.StringAttribute {
	return resource.StringAttribute{Computed: true, Sensitive: true, MarkdownDescription: description}
}

// ToldBool is a boolean of a resource that is read only.
func ToldBool(description string) resource.BoolAttribute {
	return resource.BoolAttribute{Computed: true, MarkdownDescription: description}
}

// ToldStringMap is a map of strings of a resource that is read only.
func ToldStringMap(description string) resource.MapAttribute {
	return resource.MapAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: description}
}

// ToldObjectMap is a map of nested objects of a resource that is read only.
func ToldObjectMap(description string, attributes map[string]resource.Attribute) resource.MapNestedAttribute {
	return resource.MapNestedAttribute{Computed: true, MarkdownDescription: description,
		NestedObject: resource.NestedAttributeObject{Attributes: attributes}}
}

// ToldObjectList is a list of nested objects of a resource that is read only.
func ToldObjectList(description string, attributes map[string]resource.Attribute) resource.ListNestedAttribute {
	return resource.ListNestedAttribute{Computed: true, MarkdownDescription: description,
		NestedObject: resource.NestedAttributeObject{Attributes: attributes}}
}
