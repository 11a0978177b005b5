package health

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"

	clusterhealth "github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

var (
	_ datasource.DataSource              = (*etcdMembersDataSource)(nil)
	_ datasource.DataSourceWithConfigure = (*etcdMembersDataSource)(nil)
)

// NewEtcdMembersDataSource is the constructor of the data source talosop_etcd_members.
func NewEtcdMembersDataSource() datasource.DataSource { return &etcdMembersDataSource{} }

// etcdMembersDataSource looks at the etcd of a cluster once.
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
	resp.Schema = schema.Schema{
		MarkdownDescription: "The members of a cluster's etcd and how each of them is. The control planes in " +
			"`talos_endpoints` are asked who the members are, and then each member is asked on its own machine, through the " +
			"Talos API. It only looks, once and without waiting for anything " +
			"to become better. An etcd that is unwell or does not answer is a result and never an error, so that it stops " +
			"neither plan nor destroy; what has no answer is told in a warning.\n\n" +
			"In `check` blocks keep it outside of the block, as the example does: a data source inside of one is read again " +
			"by every apply, and no plan is empty then.",
		Attributes: etcdMembersAttributes(ctx),
	}
}

func (d *etcdMembersDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var config etcdMembersModel

	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)

	if resp.Diagnostics.HasError() {
		return
	}

	seen, diags := examine(ctx, d.ConfiguredDataSource.ProviderData, config.Cluster, config.Timeouts, false)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	etcd := clusterhealth.OfEtcd(seen.want, seen.have)
	config.Fill(etcd)

	resp.Diagnostics.Append(seen.partly(etcd.Silent, "`members` has what is known.")...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &config)...)
}
