package machines

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// patchAttributes are the attributes that patches are written in, of all resources with machines.
var patchAttributes = []string{"cluster_config_patches", "config_patches", "control_plane", "machines", "cluster"}

// replaceForPatches replaces a resource whose patches give its cluster other networks, as attributes of networks do.
// Patches of the provider are in no attribute that a CLI could replace the resource for, so they are refused.
func replaceForPatches(
	ctx context.Context, p, prior machineset.Set, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) diag.Diagnostics {
	if !p.OtherPatchedNetworks(prior) {
		return nil
	}

	var changed path.Paths

	for _, name := range patchAttributes {
		at := path.Root(name)
		if _, missing := req.Plan.Schema.AttributeAtPath(ctx, at); missing.HasError() {
			continue
		}

		var now, before attr.Value

		diags := req.Plan.GetAttribute(ctx, at, &now)
		diags.Append(req.State.GetAttribute(ctx, at, &before)...)

		if diags.HasError() {
			return diags
		}

		if !now.Equal(before) {
			changed.Append(at)
		}
	}

	resp.RequiresReplace.Append(changed...)

	if len(changed) > 0 {
		return nil
	}

	return tf.Diagnostics(finding.List{finding.Refused(p.ClusterPath("name"), "Other networks of a running cluster",
		fmt.Sprintf("patches of the provider give cluster %s other pod or service networks, or another domain, than it was "+
			"created with", finding.Quote(p.Settings.Name)),
		"Kubernetes cannot change them while the cluster runs", "Take the change back, or make a new cluster")})
}
