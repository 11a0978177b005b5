package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var _ provider.ProviderWithValidateConfig = (*talosopProvider)(nil)

type providerModel struct {
	S3       types.Object `tfsdk:"s3"`
	Host     types.Object `tfsdk:"host"`
	Clusters types.Map    `tfsdk:"clusters"`

	StaticKubeconfigs types.Bool   `tfsdk:"static_kubeconfigs"`
	ProgressFile      types.String `tfsdk:"progress_file"`
	MetricsFile       types.String `tfsdk:"metrics_file"`

	ProxyURL types.String `tfsdk:"proxy_url"`
	JumpHost types.Object `tfsdk:"jump_host"`

	UnreachableEndpoints types.List   `tfsdk:"unreachable_endpoints"`
	FactoryURL           types.String `tfsdk:"factory_url"`
}

// providerStore describes the bucket credentials for all resources and data sources.
func providerStore() schema.SingleNestedAttribute {
	return tf.OptionalObject("Default bucket credentials for `talosop_etcd_backup`, `talosop_etcd_backups` and "+
		"`restore_from`, and the only ones for `retain` of `talosop_etcd_backup_schedule`. Unlike write-only "+
		"credentials, they are available to reads and destroys; they are not stored, and may come from ephemeral "+
		"resources. Default: the AWS SDK default chain (environment, shared files, machine "+
		"identity).", map[string]schema.Attribute{
		"access_key_id":     tf.OptionalString("ID of the access key, with `secret_access_key`."),
		"secret_access_key": tf.OptionalSensitive("The secret access key."),
		"session_token":     tf.OptionalSensitive("Session token of temporary credentials."),
		"profile": tf.OptionalString("Profile in the shared AWS configuration files whose credentials to use. Not " +
			"together with an access key."),
		"role": tf.OptionalObject("Role to assume with the credentials, or with those of the AWS SDK default chain.",
			map[string]schema.Attribute{
				"arn":          tf.RequiredString(store.RoleARN),
				"external_id":  tf.OptionalString(store.RoleExternalID),
				"session_name": tf.OptionalString(store.RoleSessionName),
				"endpoint":     tf.OptionalString(store.RoleEndpoint),
			}),
	})
}

func (p *talosopProvider) ValidateConfig(
	ctx context.Context, req provider.ValidateConfigRequest, resp *provider.ValidateConfigResponse,
) {
	if tf.HasBlanks(ctx, req.Config) {
		return // tf.BlankTexts reports it
	}

	var config providerModel

	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)

	if !config.S3.IsNull() && !config.S3.IsUnknown() {
		store.ValidateCredentials(path.Root("s3"), tf.Fields{Reader: &tf.Reader{}, Attributes: config.S3}, &resp.Diagnostics)
	}

	if !config.Host.IsNull() && !config.Host.IsUnknown() {
		var found finding.List

		clusterhandle.ValidateConnection(finding.Root("host"), tf.Fields{Reader: &tf.Reader{}, Attributes: config.Host},
			&found)
		resp.Diagnostics.Append(tf.Diagnostics(found)...)
	}

	resp.Diagnostics.Append(validateClusters(config.clusters(ctx))...)
	resp.Diagnostics.Append(config.validateGateway()...)
	resp.Diagnostics.Append(append(config.validateEndpoints(), config.validateFactory()...)...)
}

// storeCredentials reads the credentials of the provider's configuration.
func (m providerModel) storeCredentials() store.Credentials {
	r := &tf.Reader{Unknown: m.S3.IsUnknown()}
	credentials := store.CredentialsIn(tf.Fields{Reader: r, Attributes: m.S3})

	return store.Credentials{Credentials: credentials, Unknown: r.Unknown}
}

// hostConnection reads the connection of the provider's configuration.
func (m providerModel) hostConnection() machineset.HostConnection {
	return clusterhandle.ConnectionIn(clusterhandle.Overlay{{Reader: &tf.Reader{}, Attributes: m.Host}})
}
