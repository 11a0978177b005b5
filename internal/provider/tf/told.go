package tf

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
)

// Told is an attribute that is read only.
func Told(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}
