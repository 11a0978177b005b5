package clusterhandle

import (
	"maps"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// A handle stays as a whole while only what its resource does not use is another known value.
func TestKeepHandle(t *testing.T) {
	t.Parallel()

	kinds := map[string]attr.Type{"name": types.StringType, "talos_version": types.StringType,
		"config_patches": types.ListType{ElemType: types.StringType}}
	prior := map[string]attr.Value{"name": types.StringValue("prod"), "talos_version": types.StringValue("v1.13.0"),
		"config_patches": types.ListValueMust(types.StringType, []attr.Value{})}

	for name, test := range map[string]struct {
		change map[string]attr.Value
		kept   bool
	}{
		"nothing":              {kept: true},
		"a part of no use":     {change: map[string]attr.Value{"talos_version": types.StringValue("v1.13.2")}, kept: true},
		"an unknown part":      {change: map[string]attr.Value{"talos_version": types.StringUnknown()}},
		"a part that is gone":  {change: map[string]attr.Value{"talos_version": types.StringNull()}},
		"a part of use":        {change: map[string]attr.Value{"name": types.StringValue("test")}},
		"no patches":           {change: map[string]attr.Value{"config_patches": types.ListNull(types.StringType)}, kept: true},
		"patches":              {change: map[string]attr.Value{"config_patches": types.ListValueMust(types.StringType, []attr.Value{types.StringValue("a")})}},
		"both, and one of use": {change: map[string]attr.Value{"talos_version": types.StringValue("v1.13.2"), "name": types.StringValue("test")}},
	} {
		planned := maps.Clone(prior)
		maps.Copy(planned, test.change)

		req := planmodifier.ObjectRequest{StateValue: types.ObjectValueMust(kinds, prior), PlanValue: types.ObjectValueMust(kinds, planned)}
		resp := planmodifier.ObjectResponse{PlanValue: req.PlanValue}
		KeepHandle("talos_version").PlanModifyObject(t.Context(), req, &resp)

		if kept := resp.PlanValue.Equal(req.StateValue); kept != test.kept {
			t.Errorf("%s: kept %t", name, kept)
		}
	}

	for name, req := range map[string]planmodifier.ObjectRequest{
		"a create":          {StateValue: types.ObjectNull(kinds), PlanValue: types.ObjectValueMust(kinds, prior)},
		"an unknown handle": {StateValue: types.ObjectValueMust(kinds, prior), PlanValue: types.ObjectUnknown(kinds)},
		"no handle":         {StateValue: types.ObjectValueMust(kinds, prior), PlanValue: types.ObjectNull(kinds)},
	} {
		resp := planmodifier.ObjectResponse{PlanValue: req.PlanValue}
		KeepHandle("talos_version").PlanModifyObject(t.Context(), req, &resp)

		if !resp.PlanValue.Equal(req.PlanValue) {
			t.Errorf("%s: the plan is %s", name, resp.PlanValue)
		}
	}
}
