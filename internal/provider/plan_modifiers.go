package provider

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Replacing a resource resets machines. So it is planned only when the new value
// is known to differ: an unknown value may turn out to be the old one.

func replaceOnChange() planmodifier.String {
	const description = "A change of the value replaces the resource."

	return stringplanmodifier.RequiresReplaceIf(
		func(_ context.Context, req planmodifier.StringRequest, resp *stringplanmodifier.RequiresReplaceIfFuncResponse) {
			resp.RequiresReplace = !req.PlanValue.IsUnknown()
		}, description, description)
}

// replaceOnChangeFrom is replaceOnChange for a value with a default that Talos
// fills in: spelling the default out is no change.
func replaceOnChangeFrom(fallback string) planmodifier.String {
	const description = "A change of the value replaces the resource."

	effective := func(v types.String) string {
		if v.IsNull() {
			return fallback
		}

		return v.ValueString()
	}

	return stringplanmodifier.RequiresReplaceIf(
		func(_ context.Context, req planmodifier.StringRequest, resp *stringplanmodifier.RequiresReplaceIfFuncResponse) {
			resp.RequiresReplace = !req.PlanValue.IsUnknown() && effective(req.PlanValue) != effective(req.StateValue)
		}, description, description)
}

// replaceListOnChangeFrom is replaceOnChangeFrom for lists of strings, whose default depends on what the machines run on:
// the `mode` beside the attribute.
func replaceListOnChangeFrom(metal, container string) planmodifier.List {
	const description = "A change of the value replaces the resource."

	return listplanmodifier.RequiresReplaceIf(
		func(ctx context.Context, req planmodifier.ListRequest, resp *listplanmodifier.RequiresReplaceIfFuncResponse) {
			planned, known := knownStrings(req.PlanValue)
			if !known {
				return
			}

			recorded, _ := knownStrings(req.StateValue)
			fallback := metal

			var mode types.String
			if diags := req.State.GetAttribute(ctx, req.Path.ParentPath().AtName("mode"), &mode); !diags.HasError() && mode.ValueString() == containerMode {
				fallback = container
			}

			if len(planned) == 0 {
				planned = []string{fallback}
			}

			if len(recorded) == 0 {
				recorded = []string{fallback}
			}

			resp.RequiresReplace = !slices.Equal(planned, recorded)
		}, description, description)
}

// knownStrings returns the elements of a list of strings, and whether the list
// and all of them are known. An unknown element is the empty string; a null list
// has no elements.
func knownStrings(list types.List) ([]string, bool) {
	var out []string

	known := !list.IsUnknown()

	for _, element := range list.Elements() {
		s, ok := element.(types.String)
		known = known && ok && !s.IsUnknown()
		out = append(out, s.ValueString())
	}

	return out, known
}
