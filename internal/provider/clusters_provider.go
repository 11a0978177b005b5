package provider

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// providerClusters describes the clusters whose secrets are in no state.
func providerClusters() schema.MapNestedAttribute {
	return schema.MapNestedAttribute{
		Optional: true,
		MarkdownDescription: "Clusters whose secrets are to be in neither state nor plan, by their names. What names such " +
			"a cluster and has no `secrets`, as `talosop_cluster`, `talosop_control_plane` or a handle, takes them from here, " +
			"whenever it is planned, read, applied or destroyed; state has a digest, by which others are refused. They are " +
			"stored nowhere, and may come from ephemeral resources and variables ([guide](guides/credentials.md)).",
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"secrets": schema.StringAttribute{
				Required: true, Sensitive: true,
				MarkdownDescription: "Secrets bundle of the cluster: YAML as `talosctl gen secrets` writes it.",
			},
		}},
	}
}

// clusters reads the clusters of the provider's configuration.
func (m providerModel) clusters(ctx context.Context) providerdata.Clusters {
	r := &tf.Reader{}
	clusters := providerdata.Clusters{Unknown: m.Clusters.IsUnknown(), Secrets: map[string]types.String{}}

	for name, one := range tf.Objects[clusterModel](ctx, r, m.Clusters) {
		clusters.Secrets[name] = one.Secrets
	}

	clusters.Unknown = clusters.Unknown || r.Unknown

	return clusters
}

type clusterModel struct {
	Secrets types.String `tfsdk:"secrets"`
}

func validateClusters(clusters providerdata.Clusters) diag.Diagnostics {
	var diags diag.Diagnostics

	for _, name := range slices.Sorted(maps.Keys(clusters.Secrets)) {
		bundle := clusters.Secrets[name]
		if bundle.IsUnknown() {
			continue
		}

		if _, err := pki.Parse([]byte(bundle.ValueString())); err != nil {
			diags.Append(tf.InvalidSecrets(path.Root("clusters").AtMapKey(name).AtName("secrets"), err))
		}
	}

	return diags
}
