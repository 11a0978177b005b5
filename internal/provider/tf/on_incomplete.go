package tf

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// The choices of on_incomplete: how a create that did not finish is reported.
const (
	OnIncompleteWarn  = "warn"
	OnIncompleteError = "error"
)

// OnIncomplete is on_incomplete of a resource whose create can be continued; description explains the choices.
func OnIncomplete(description string) schema.StringAttribute {
	return schema.StringAttribute{
		Optional:            true,
		Computed:            true,
		Default:             stringdefault.StaticString(OnIncompleteWarn),
		Validators:          []validator.String{stringvalidator.OneOf(OnIncompleteWarn, OnIncompleteError)},
		MarkdownDescription: description + " Default: `" + OnIncompleteWarn + "`.",
	}
}
