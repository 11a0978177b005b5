package machines

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// networkPlaces are the attributes and patches that contain the networks of a cluster, of all resources with
// machines.
func networkPlaces() path.Paths {
	cluster := path.Root("cluster")

	return path.Paths{
		path.Root("pod_cidrs"), path.Root("service_cidrs"), path.Root("dns_domain"), path.Root("cluster_config_patches"),
		path.Root("config_patches"), path.Root("control_plane"), path.Root("machines"), cluster.AtName("pod_cidrs"),
		cluster.AtName("service_cidrs"), cluster.AtName("dns_domain"), cluster.AtName("config_patches"),
	}
}

// replaceForNetworks replaces a resource whose cluster gets other networks, by attributes or by patches. No
// attribute of the resource contains patches of the provider, so it refuses those.
func replaceForNetworks(
	ctx context.Context, p, prior machineset.Set, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) diag.Diagnostics {
	if !p.OtherNetworks(prior) {
		return nil
	}

	var changed path.Paths

	for _, at := range networkPlaces() {
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

	return tf.Diagnostics(finding.List{networksChanged.At(p.ClusterPath("name"),
		finding.Args{"cluster": p.Settings.Name})})
}
