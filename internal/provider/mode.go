package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

// The modes: what machines run on.
const (
	metalMode     = "metal"
	containerMode = "container"
)

// modeValidator accepts the modes of this release, and tells the one that is to
// come from a mistake.
type modeValidator struct{}

func (modeValidator) Description(context.Context) string { return `value must be "metal"` }

func (v modeValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (modeValidator) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}

	switch mode := req.ConfigValue.ValueString(); mode {
	case metalMode:
	case containerMode:
		resp.Diagnostics.Append(invalid(req.Path, "mode", "found "+quote(mode), "Clusters in containers are not part of this release of the provider",
			`Use "metal", for physical and virtual machines`))
	default:
		resp.Diagnostics.Append(invalid(req.Path, "mode", "found "+quote(mode), `allowed is "metal"`, "Use it for physical and virtual machines"))
	}
}
