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

// modeValidator accepts the modes.
type modeValidator struct{}

func (modeValidator) Description(context.Context) string {
	return `value must be "metal" or "container"`
}

func (v modeValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (modeValidator) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}

	switch mode := req.ConfigValue.ValueString(); mode {
	case metalMode, containerMode:
	default:
		resp.Diagnostics.Append(invalid(req.Path, "mode", "found "+quote(mode), `allowed are "metal", for physical and virtual machines, and "container", for pods of a Kubernetes cluster`,
			"choose one of them"))
	}
}
