package tf

import (
	list "github.com/hashicorp/terraform-plugin-framework/list/schema"
	resource "github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// ListAttributes are attributes of a resource on a list resource, which has none that are sensitive or write-only. Only
// the types that places of backups have are known here.
func ListAttributes(in map[string]resource.Attribute) map[string]list.Attribute {
	out := map[string]list.Attribute{}

	for name, a := range in {
		switch a := a.(type) {
		case resource.StringAttribute:
			out[name] = list.StringAttribute{Required: a.Required, Optional: a.Optional, Validators: a.Validators,
				MarkdownDescription: a.MarkdownDescription}
		case resource.BoolAttribute:
			out[name] = list.BoolAttribute{Required: a.Required, Optional: a.Optional,
				MarkdownDescription: a.MarkdownDescription}
		case resource.SingleNestedAttribute:
			out[name] = list.SingleNestedAttribute{Required: a.Required, Optional: a.Optional,
				MarkdownDescription: a.MarkdownDescription, Attributes: ListAttributes(a.Attributes)}
		default:
			panic(Unconverted(name, a))
		}
	}

	return out
}
