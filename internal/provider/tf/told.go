package tf

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	resource "github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// Told is an attribute that is read only.
func Told(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

// ToldByResource is Told for a resource.
func ToldByResource(description string) resource.StringAttribute {
	return resource.StringAttribute{Computed: true, MarkdownDescription: description}
}
