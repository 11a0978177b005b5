package clusterhandle

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// keptHandle keeps a handle in state whose list of patches is empty when the configuration has none.
type keptHandle struct{}

// KeepHandle keeps a handle in state that differs from the configuration only in an empty list of patches, which has
// the same meaning: configurations that a CLI generates omit sensitive values. It keeps the handle as a whole,
// because CLIs accept no value for a part of it other than the one in the configuration.
func KeepHandle() planmodifier.Object { return keptHandle{} }

// Description implements planmodifier.Describer.
func (keptHandle) Description(context.Context) string {
	return "An empty list of patches is the same as none."
}

// MarkdownDescription implements planmodifier.Describer.
func (m keptHandle) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

// PlanModifyObject implements planmodifier.Object.
func (keptHandle) PlanModifyObject(
	_ context.Context, req planmodifier.ObjectRequest, resp *planmodifier.ObjectResponse,
) {
	planned, prior := req.PlanValue.Attributes(), req.StateValue.Attributes()

	before, ok := prior["config_patches"].(types.List)
	after, also := planned["config_patches"].(types.List)

	if !ok || !also || !after.IsNull() || before.IsNull() || len(before.Elements()) > 0 {
		return
	}

	for name, value := range planned {
		if name != "config_patches" && !value.Equal(prior[name]) {
			return
		}
	}

	resp.PlanValue = req.StateValue
}
