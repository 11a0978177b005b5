package tf

import (
	"cmp"
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// Replacing a resource resets machines. It is therefore planned only when the new value is known to differ: an
// unknown value may turn out unchanged.

// ReplaceOnChange replaces the resource when the value changes, and not while it is unknown.
func ReplaceOnChange() planmodifier.String { return ReplaceOnChangeFrom("") }

// ReplaceOnChangeFrom is ReplaceOnChange for a value with a default of Talos: writing the default is no change.
func ReplaceOnChangeFrom(fallback string) planmodifier.String {
	return ReplaceUnless(func(a, b string) bool { return cmp.Or(a, fallback) == cmp.Or(b, fallback) })
}

// ReplaceUnless is ReplaceOnChange for a value with several spellings. A null value is empty.
func ReplaceUnless(same func(a, b string) bool) planmodifier.String {
	const description = "A change of the value replaces the resource."

	return stringplanmodifier.RequiresReplaceIf(
		func(_ context.Context, req planmodifier.StringRequest, resp *stringplanmodifier.RequiresReplaceIfFuncResponse) {
			resp.RequiresReplace = !req.PlanValue.IsUnknown() && !same(req.PlanValue.ValueString(), req.StateValue.ValueString())
		}, description, description)
}

// Version is a version in the form for comparisons: with a leading v. Null and unknown values are unchanged.
func Version(v types.String) types.String {
	if v.IsNull() || v.IsUnknown() {
		return v
	}

	return types.StringValue(machineconfig.CanonicalVersion(v.ValueString()))
}

// keptSpelling is the modifier of KeepSpelling.
type keptSpelling struct {
	same        func(a, b string) bool
	description string
}

// KeepSpelling keeps the spelling of a text in state when the configuration has the same value in another spelling.
func KeepSpelling(same func(a, b string) bool, description string) planmodifier.String {
	return keptSpelling{same, description}
}

// KeepVersion keeps a version as written in state, with or without a leading v, when the configuration has the same
// one.
func KeepVersion() planmodifier.String {
	same := func(a, b string) bool { return machineconfig.CanonicalVersion(a) == machineconfig.CanonicalVersion(b) }

	return KeepSpelling(same, "A version with and without a leading v is the same one.")
}

// Description implements planmodifier.Describer.
func (m keptSpelling) Description(context.Context) string { return m.description }

// MarkdownDescription implements planmodifier.Describer.
func (m keptSpelling) MarkdownDescription(context.Context) string { return m.description }

// PlanModifyString implements planmodifier.String.
func (m keptSpelling) PlanModifyString(
	_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse,
) {
	if !req.StateValue.IsNull() && !req.PlanValue.IsUnknown() && !req.PlanValue.IsNull() &&
		m.same(req.StateValue.ValueString(), req.PlanValue.ValueString()) {
		resp.PlanValue = req.StateValue
	}
}

// KnownStrings returns the elements of a list of strings, and whether the list
// and all of them are known. An unknown element is the empty string; a null list
// has no elements.
func KnownStrings(list types.List) ([]string, bool) {
	var out []string

	known := !list.IsUnknown()

	for _, element := range list.Elements() {
		s, ok := element.(types.String)
		known = known && ok && !s.IsUnknown()
		out = append(out, s.ValueString())
	}

	return out, known
}
