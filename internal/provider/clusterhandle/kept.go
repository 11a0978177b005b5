package clusterhandle

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// keptHandle keeps a handle in state that differs from the configuration in nothing that its resource uses.
type keptHandle struct{ unused []string }

// KeptObject is an attribute with a handle that its resource keeps as KeepHandle does.
func KeptObject(attribute schema.SingleNestedAttribute, unused ...string) schema.SingleNestedAttribute {
	attribute.PlanModifiers = []planmodifier.Object{KeepHandle(unused...)}

	return attribute
}

// KeepHandle keeps a handle in state whose differences from the configuration do not concern the resource: an empty
// list of patches, which has the same meaning as none, because configurations that a CLI generates omit sensitive
// values; and other known values of the unused attributes. It keeps the handle as a whole, because CLIs accept no
// value for a part of it other than the one in the configuration.
func KeepHandle(unused ...string) planmodifier.Object { return keptHandle{unused} }

// Description implements planmodifier.Describer.
func (keptHandle) Description(context.Context) string {
	return "A change of the handle that does not concern the resource is no change of the resource."
}

// MarkdownDescription implements planmodifier.Describer.
func (m keptHandle) MarkdownDescription(ctx context.Context) string { return m.Description(ctx) }

// PlanModifyObject implements planmodifier.Object.
func (m keptHandle) PlanModifyObject(
	_ context.Context, req planmodifier.ObjectRequest, resp *planmodifier.ObjectResponse,
) {
	if req.StateValue.IsNull() || req.PlanValue.IsNull() || req.PlanValue.IsUnknown() {
		return
	}

	prior := req.StateValue.Attributes()

	for name, value := range req.PlanValue.Attributes() {
		if !value.Equal(prior[name]) && !m.ignores(name, prior[name], value) {
			return
		}
	}

	resp.PlanValue = req.StateValue
}

// ignores reports whether a change of an attribute does not concern the resource. An unknown value does: the phase of
// a cluster is unknown while it is created. So does one that a handle gains or loses: it shows who wrote the handle.
func (m keptHandle) ignores(name string, prior, planned attr.Value) bool {
	if patches, ok := prior.(types.List); ok && name == "config_patches" {
		return planned.IsNull() && !patches.IsNull() && len(patches.Elements()) == 0
	}

	return slices.Contains(m.unused, name) && !planned.IsUnknown() && planned.IsNull() == prior.IsNull()
}
