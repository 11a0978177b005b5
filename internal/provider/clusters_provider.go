package provider

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// providerClusters describes the secrets of clusters that stay out of state.
func providerClusters() schema.MapNestedAttribute {
	return tf.OptionalObjectMap("Per-cluster secrets that stay out of state and plans, keyed by cluster name. They "+
		"are available whenever a resource of the cluster is planned, read, applied or destroyed. They are stored "+
		"nowhere, and may come from ephemeral resources and variables "+
		"([guide](guides/secrets-and-state.md)).", map[string]schema.Attribute{
		"secrets": tf.OptionalSensitive("Secrets bundle of the cluster: YAML from `talosctl gen secrets`. Resources and " +
			"handles that name the cluster and have no `secrets` use it. State stores a digest, and the provider refuses " +
			"other secrets."),
		"kubeconfig": tf.OptionalSensitive("Kubeconfig of the cluster, in YAML or JSON, for addons whose `kubeconfig` " +
			"names it."),
		"config_patches": schema.ListAttribute{
			Validators: []validator.List{tf.MayBeBlank{}},
			Optional:   true, Sensitive: true, ElementType: types.StringType,
			MarkdownDescription: "Patches of the configuration of every machine of the cluster, for registry passwords and " +
				"other secrets, applied after `cluster_config_patches`. A change is applied as a change of those, and the plan " +
				"does not show its paths.",
		},
		"machines": providerMachines(),
	})
}

func providerMachines() schema.MapNestedAttribute {
	return tf.OptionalObjectMap("Per-machine secrets that stay out of state and plans, keyed by hostname.",
		map[string]schema.Attribute{
			"config_patches": schema.ListAttribute{
				Validators: []validator.List{tf.MayBeBlank{}},
				Optional:   true, Sensitive: true, ElementType: types.StringType,
				MarkdownDescription: "Patches of the configuration of this machine, applied after all others.",
			},
			"meta": schema.MapAttribute{
				Validators: []validator.Map{tf.MayBeBlank{}},
				Optional:   true, Sensitive: true, ElementType: types.StringType,
				MarkdownDescription: "Values in META of the machine, by the same names as in `meta`, for other keys than " +
					"there. A refresh compares them with META, and plans name the keys that differ.",
			},
		})
}

// clusters reads the clusters of the provider's configuration.
func (m providerModel) clusters(ctx context.Context) providerdata.Clusters {
	r := &tf.Reader{}

	return providerdata.Clusters{By: tf.Objects[providerdata.ProvidedCluster](ctx, r, m.Clusters), Unknown: r.Unknown}
}

func validateClusters(clusters providerdata.Clusters) diag.Diagnostics {
	var diags diag.Diagnostics // the resource that renders configurations reports whether patches fit its cluster

	for _, name := range slices.Sorted(maps.Keys(clusters.By)) {
		one, at := clusters.By[name], path.Root("clusters").AtMapKey(name)

		if bundle := one.Secrets; !bundle.IsUnknown() && !bundle.IsNull() {
			if _, err := pki.Parse([]byte(bundle.ValueString())); err != nil {
				diags.Append(tf.InvalidSecrets(at.AtName("secrets"), err))
			}
		}
	}

	return diags
}
