package health

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"

	clusterhealth "github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

// NewEtcdMembersDataSource is the constructor of the data source talosop_etcd_members.
func NewEtcdMembersDataSource() datasource.DataSource {
	return &providerdata.DataSource[etcdMembersModel]{
		Name: "etcd_members",
		Description: "The etcd members of a cluster and the health of each, as its machine reports " +
			"it through the Talos API. It reads once, without waiting: an unhealthy or unreachable etcd is a result, not an " +
			"error, and failed queries are warnings. The [guide to observing a cluster](../guides/observing.md) shows " +
			"`check` blocks.",
		Attributes: etcdMembersAttributes,
		Timeout:    examinedTimeout,
		Look:       observeMembers,
	}
}

// observeMembers observes the etcd of a cluster once.
func observeMembers(ctx context.Context, m *providerdata.ProviderData, config *etcdMembersModel) diag.Diagnostics {
	seen, diags := examine(ctx, m, config.Cluster, config.Timeouts, false)
	if diags.HasError() {
		return diags
	}

	etcd := clusterhealth.OfEtcd(seen.want, seen.have)
	config.Fill(etcd)

	return append(diags, seen.partly(etcd.Silent, "members")...)
}
