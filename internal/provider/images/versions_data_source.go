package images

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	resource "github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/image/assets"
	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/versions"
)

// NewVersionsDataSource is the constructor of talosop_versions.
func NewVersionsDataSource() datasource.DataSource {
	return &providerdata.DataSource[versionsModel]{
		Name: "versions",
		Description: "Releases of Talos or Kubernetes that this provider supports, as an Image Factory or a " +
			"container registry lists them ([guide](../guides/talos-upgrades#find-new-releases)). Each plan contacts that " +
			"server, and fails if it does not answer. In a `check` block, the failure is a warning.",
		Attributes: versionsAttributes,
		Timeout:    "Time for the server to answer. Default: `1m`.",
		Check: func(_ context.Context, config *versionsModel) diag.Diagnostics {
			_, found := config.choose()

			return tf.Diagnostics(found)
		},
		Look: listVersions,
	}
}

// versionsModel is the data source talosop_versions.
type versionsModel struct {
	Product      types.String   `tfsdk:"product"`
	TalosVersion types.String   `tfsdk:"talos_version"`
	Minor        types.String   `tfsdk:"minor"`
	UpTo         types.String   `tfsdk:"up_to"`
	NewerThan    types.String   `tfsdk:"newer_than"`
	Prereleases  types.Bool     `tfsdk:"prereleases"`
	FactoryURL   types.String   `tfsdk:"factory_url"`
	Repository   types.String   `tfsdk:"repository"`
	Timeouts     timeouts.Value `tfsdk:"timeouts"`

	Versions      types.List   `tfsdk:"versions"`
	Newest        types.String `tfsdk:"newest"`
	NewestPatches types.Map    `tfsdk:"newest_patches"`
}

func versionsAttributes() map[string]resource.Attribute {
	return map[string]resource.Attribute{
		"product": tf.RequiredString("`talos` or `kubernetes`."),
		"talos_version": tf.OptionalString("Talos version that has to support the releases, such as `" +
			machineconfig.CurrentTalos + "`, with or without the `v`. Required for `kubernetes`, and only used there."),
		"minor": tf.OptionalString("Minor version to list, such as `v1.14`, with or without the `v`. Default: all."),
		"up_to": tf.OptionalString("Newest version to list, such as `v1.14.1`, or newest minor version with all its " +
			"patches, such as `v1.14`; with or without the `v`. Default: no bound."),
		"newer_than": tf.OptionalString("Version after which the list begins, such as `v1.14.0`, with or without the `v`: " +
			"`length(versions)` is then how many releases it is behind. Default: no bound."),
		"prereleases": tf.OptionalBool("Whether to list alpha and beta versions and release candidates. Default: `false`."),
		"factory_url": tf.OptionalString("URL of the Image Factory that lists Talos releases, such as `" +
			assets.PublicFactory + "` (default). Only for `talos`."),
		"repository": tf.OptionalString("Repository whose tags are the releases, such as `registry.example.com/siderolabs/" +
			"installer`, with the prefix `http://` for a registry without TLS. The credentials are those of `docker login`. " +
			"Default: the Image Factory for `talos`, `" + kubeletRepository + "` for `kubernetes`."),
		"versions": tf.ComputedStrings("The releases, such as `v1.14.1`, oldest first; empty if there is none."),
		"newest":   tf.ComputedString("The newest of them, such as `v1.14.1`; null if there is none."),
		"newest_patches": tf.ComputedStringMap("The newest release of each minor version, such as `{ \"v1.14\" = " +
			"\"v1.14.1\" }`."),
	}
}

// listVersions asks the server for its releases.
func listVersions(ctx context.Context, _ *providerdata.ProviderData, config *versionsModel) diag.Diagnostics {
	asked, found := config.choose()
	diags := tf.Diagnostics(found)

	timeout, more := tf.ReadLimit(ctx, config.Timeouts, askWithin)
	if diags.Append(more...); diags.HasError() {
		return diags
	}

	ctx, cancel := context.WithTimeoutCause(ctx, timeout, &tf.RanOutError{Operation: tf.OpRead, Limit: timeout})
	defer cancel()

	releases, found := asked.list(ctx)
	if diags.Append(tf.Diagnostics(found)...); !diags.HasError() {
		config.fill(releases)
	}

	return diags
}

// fill fills in the results.
func (m *versionsModel) fill(found []string) {
	m.Versions, m.Newest = tf.TextList(found), types.StringNull()
	m.NewestPatches = textMapOrNull(versions.NewestPatches(found))

	if len(found) > 0 {
		m.Newest = types.StringValue(found[len(found)-1])
	}
}
