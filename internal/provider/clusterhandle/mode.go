package clusterhandle

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/network"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// The modes: what machines run on.
const (
	MetalMode     = "metal"
	ContainerMode = "container"
)

// Mode accepts the modes.
var Mode = tf.StringCheck{
	Allowed: `value must be "metal" or "container"`,
	Check: func(at path.Path, value string) diag.Diagnostic {
		if value == MetalMode || value == ContainerMode {
			return nil
		}

		return tf.Diagnostic(invalidMode.At(tf.PathOf(at), finding.Args{"value": value}))
	},
}

// ReplaceOnOtherName replaces the resource when the name of a cluster changes, unless the `mode` and the `secrets`
// next to the name show that it is the same cluster.
func ReplaceOnOtherName() planmodifier.String {
	const description = "In containers, or with the secrets of another cluster, a change replaces the resource."

	return stringplanmodifier.RequiresReplaceIf(
		func(ctx context.Context, req planmodifier.StringRequest, resp *stringplanmodifier.RequiresReplaceIfFuncResponse) {
			var mode, wanted, had types.String

			beside := req.Path.ParentPath()
			resp.Diagnostics.Append(req.State.GetAttribute(ctx, beside.AtName("mode"), &mode)...)
			resp.Diagnostics.Append(req.State.GetAttribute(ctx, beside.AtName("secrets"), &had)...)
			resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, beside.AtName("secrets"), &wanted)...)

			resp.RequiresReplace = !req.PlanValue.IsUnknown() &&
				!machineset.CanRename(mode.ValueString() == ContainerMode, wanted.IsNull() || had.IsNull(), wanted.ValueString(),
					had.ValueString())
		}, description, description)
}

// replaceOnOtherDomain replaces the resource when a DNS domain changes.
func replaceOnOtherDomain(fallback string) planmodifier.String {
	return tf.ReplaceUnless(func(a, b string) bool { return network.SameDomain(a, b, fallback) })
}
