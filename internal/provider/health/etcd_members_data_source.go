package health

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"

	clusterhealth "github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

var (
	_ datasource.DataSource              = (*etcdMembersDataSource)(nil)
	_ datasource.DataSourceWithConfigure = (*etcdMembersDataSource)(nil)
)

// NewEtcdMembersDataSource is the constructor of the data source talosop_etcd_members.
func NewEtcdMembersDataSource() datasource.DataSource { return &etcdMembersDataSource{} }

// etcdMembersDataSource observes the etcd of a cluster once.
type etcdMembersDataSource struct {
	providerdata.ConfiguredDataSource
}

func (d *etcdMembersDataSource) Metadata(
	_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse,
) {
	resp.TypeName = req.ProviderTypeName + "_etcd_members"
}

func (d *etcdMembersDataSource) Schema(
	ctx context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse,
) {
	resp.Schema = examinedSchema(ctx, "The etcd members of a cluster and the health of each, as its machine reports "+
		"it through the Talos API. It reads once, without waiting: an unhealthy or unreachable etcd is a result, not an "+
		"error, and failed queries are warnings. The [guide to observing a cluster](../guides/observing.md) shows "+
		"`check` blocks.", etcdMembersAttributes())
}

func (d *etcdMembersDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var config etcdMembersModel

	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)

	if resp.Diagnostics.HasError() {
		return
	}

	seen, diags := examine(ctx, d.ProviderData, config.Cluster, config.Timeouts, false)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	etcd := clusterhealth.OfEtcd(seen.want, seen.have)
	config.Fill(etcd)

	resp.Diagnostics.Append(seen.partly(etcd.Silent, "members")...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &config)...)
}
