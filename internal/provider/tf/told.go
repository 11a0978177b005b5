package tf

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
)

func Told(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}
