package tf

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// StringCheck is a validator of texts: Allowed describes what it accepts, and Check returns what is wrong with a
// known value, or nil.
type StringCheck struct {
	Allowed string
	Check   func(at path.Path, value string) diag.Diagnostic
}

var _ validator.String = StringCheck{}

// Description implements validator.Describer.
func (c StringCheck) Description(context.Context) string { return c.Allowed }

// MarkdownDescription implements validator.Describer.
func (c StringCheck) MarkdownDescription(context.Context) string { return c.Allowed }

// ValidateString implements validator.String.
func (c StringCheck) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}

	if mistake := c.Check(req.Path, req.ConfigValue.ValueString()); mistake != nil {
		resp.Diagnostics.Append(mistake)
	}
}
