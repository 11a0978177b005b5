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
	return tf.OptionalObjectMap("What of clusters is to be in neither state nor plan, by their names: it is there "+
		"whenever a resource of the cluster is planned, read, applied or destroyed, stored nowhere, and may come from "+
		"ephemeral resources and variables ([guide](guides/secrets-and-state.md)).", map[string]schema.Attribute{
		"secrets": tf.OptionalSensitive("Secrets bundle of the cluster: YAML as `talosctl gen secrets` writes it. " +
			"Resources and handles that name the cluster and have no `secrets` take these; state has a digest, by which " +
			"others are refused."),
		"kubeconfig": tf.OptionalSensitive("Kubeconfig of the cluster, in YAML or JSON, for addons whose `kubeconfig` " +
			"names it."),
		"config_patches": schema.ListAttribute{
			Validators: []validator.List{tf.MayBeBlank{}},
			Optional:   true, Sensitive: true, ElementType: types.StringType,
			MarkdownDescription: "Patches of the configuration of every machine of the cluster, as in " +
				"`cluster_config_patches`, after which they are applied: for passwords of registries and other secrets. A change " +
				"is applied as one of those is, and the plan names no paths of it.",
		},
		"machines": providerMachines(),
	})
}

func providerMachines() schema.MapNestedAttribute {
	return tf.OptionalObjectMap("What of single machines is to be in neither state nor plan, by their host names.",
		map[string]schema.Attribute{
			"config_patches": schema.ListAttribute{
				Validators: []validator.List{tf.MayBeBlank{}},
				Optional:   true, Sensitive: true, ElementType: types.StringType,
				MarkdownDescription: "Patches of the configuration of this machine, after all others.",
			},
			"meta": schema.MapAttribute{
				Validators: []validator.Map{tf.MayBeBlank{}},
				Optional:   true, Sensitive: true, ElementType: types.StringType,
				MarkdownDescription: "Values in META of the machine, of other keys than `meta` of it has, by the same names. A refresh " +
					"compares them with what META holds, and plans name the keys that differ.",
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
