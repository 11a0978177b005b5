// Package health is the data sources talosop_cluster_health and talosop_etcd_members.
package health

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"

	clusterhealth "github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ datasource.DataSource              = (*clusterHealthDataSource)(nil)
	_ datasource.DataSourceWithConfigure = (*clusterHealthDataSource)(nil)

	_ datasource.DataSourceWithValidateConfig = (*clusterHealthDataSource)(nil)
)

// NewClusterHealthDataSource is the constructor of the data source talosop_cluster_health.
func NewClusterHealthDataSource() datasource.DataSource { return &clusterHealthDataSource{} }

// clusterHealthDataSource observes a cluster once.
type clusterHealthDataSource struct {
	providerdata.ConfiguredDataSource
}

func (d *clusterHealthDataSource) Metadata(
	_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_cluster_health"
}

func (d *clusterHealthDataSource) Schema(
	ctx context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse,
) {
	resp.Schema = examinedSchema(ctx, "Cluster health as conditions with name, status and reason, from the Talos API "+
		"of the control planes, each etcd member and the Kubernetes API. It reads once, without waiting: an unhealthy or "+
		"unreachable cluster is a result, not an error, and failed queries are warnings. The [guide to observing a "+
		"cluster](../guides/observing.md) explains each condition and shows `check` blocks.", clusterHealthAttributes())
}

// ValidateConfig implements datasource.DataSourceWithValidateConfig.
func (d *clusterHealthDataSource) ValidateConfig(
	ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse,
) {
	var config clusterHealthModel

	if tf.ReadForValidation(ctx, req.Config, &config, &resp.Diagnostics) {
		config.within(&resp.Diagnostics)
	}
}

func (d *clusterHealthDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var config clusterHealthModel

	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)

	within := config.within(&resp.Diagnostics)

	if resp.Diagnostics.HasError() {
		return
	}

	seen, diags := examine(ctx, d.ProviderData, config.Cluster, config.Timeouts, true)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	health := clusterhealth.Of(seen.want, seen.have, clusterhealth.Expiry{Authorities: seen.authorities, Within: within})
	config.Fill(health)
	config.Draw(seen.want, health)

	all, diags := config.observation(ctx, seen, health)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(config.Paint(all, seen.have.Time)...)
	resp.Diagnostics.Append(seen.partly(health.Silent, "conditions")...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &config)...)
}
