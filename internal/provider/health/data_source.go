// Package health is the data sources talosop_cluster_health and talosop_etcd_members.
package health

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"

	clusterhealth "github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

// NewClusterHealthDataSource is the constructor of the data source talosop_cluster_health.
func NewClusterHealthDataSource() datasource.DataSource {
	return &providerdata.DataSource[clusterHealthModel]{
		Name: "cluster_health",
		Description: "Cluster health as conditions with name, status and reason, from the Talos API " +
			"of the control planes, each etcd member and the Kubernetes API. It reads once, without waiting: an unhealthy or " +
			"unreachable cluster is a result, not an error, and failed queries are warnings. The [guide to observing a " +
			"cluster](../guides/observing.md) explains each condition and shows `check` blocks.",
		Attributes: clusterHealthAttributes,
		Timeout:    examinedTimeout,
		Check: func(_ context.Context, config *clusterHealthModel) (diags diag.Diagnostics) {
			config.within(&diags)

			return diags
		},
		Look: observeHealth,
	}
}

// observeHealth observes a cluster once.
func observeHealth(
	ctx context.Context, m *providerdata.ProviderData, config *clusterHealthModel,
) (diags diag.Diagnostics) {
	within := config.within(&diags)
	if diags.HasError() {
		return diags
	}

	seen, more := examine(ctx, m, config.Cluster, config.Timeouts, true)
	if diags.Append(more...); diags.HasError() {
		return diags
	}

	health := clusterhealth.Of(seen.want, seen.have, clusterhealth.Expiry{Authorities: seen.authorities, Within: within})
	config.Fill(health)
	config.Draw(seen.want, health)

	all, more := config.observation(ctx, seen, health)
	diags.Append(more...)
	diags.Append(config.Paint(all, seen.have.Time)...)

	return append(diags, seen.partly(health.Silent, "conditions")...)
}
