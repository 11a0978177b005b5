// Package health is the data sources talosop_cluster_health and talosop_etcd_members.
package health

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"

	clusterhealth "github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

var (
	_ datasource.DataSource              = (*clusterHealthDataSource)(nil)
	_ datasource.DataSourceWithConfigure = (*clusterHealthDataSource)(nil)
)

// NewClusterHealthDataSource is the constructor of the data source talosop_cluster_health.
func NewClusterHealthDataSource() datasource.DataSource { return &clusterHealthDataSource{} }

// clusterHealthDataSource looks at a cluster once.
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
	resp.Schema = schema.Schema{
		MarkdownDescription: "How a cluster is, as conditions with name, status and reason: seen through the Talos API of " +
			"its control planes, through each member of etcd and through the Kubernetes API. It only looks, once and without " +
			"waiting for anything to become better. A cluster that is unwell or does not answer is a result and never an " +
			"error, so that it stops neither plan nor destroy; what has no answer is told in a warning.\n\n" +
			"It is meant for `check` blocks. Keep it outside of the block, as the example does: a data source inside of one " +
			"is read again by every apply, and no plan is empty then.\n\n" +
			"The conditions, each of which is in every answer, in this order:\n\n" + conditionList(),
		Attributes: clusterHealthAttributes(ctx),
	}
}

func (d *clusterHealthDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var config clusterHealthModel

	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)

	if resp.Diagnostics.HasError() {
		return
	}

	seen, diags := examine(ctx, d.ConfiguredDataSource.ProviderData, config.Cluster, config.Timeouts, true)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	health := clusterhealth.Of(seen.want, seen.have)
	config.Fill(health)

	resp.Diagnostics.Append(seen.partly(health.Silent, "`conditions` has what is known.")...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &config)...)
}

// ConditionMeanings say when a condition is True, in the order of the conditions.
var ConditionMeanings = []struct{ Name, meaning string }{
	{clusterhealth.TalosAPIReachable, "every control plane answers as a member of this cluster: those in `talos_endpoints`, " +
		"and those that only etcd knows"},
	{clusterhealth.ControlPlanesReady, "Talos runs and is ready on each of them"},
	{clusterhealth.EtcdQuorum, "etcd lists its members, which takes a quorum of them"},
	{clusterhealth.EtcdMembersHealthy, "every member votes, answers for itself, follows a leader, raised no alarm and " +
		"reports no error, and every control plane has a member"},
	{clusterhealth.EtcdAgreement, "all members that answer follow the same leader and know the same members"},
	{clusterhealth.EtcdNoAlarms, "no alarm is raised in etcd, such as `NOSPACE` or `CORRUPT`"},
	{clusterhealth.KubernetesAPI, "the Kubernetes API lists the nodes, at `endpoint` or at one of the control planes"},
	{clusterhealth.NodesReady, "all nodes are Ready; `last_change` is when the last of them became so or, while it is " +
		"`False`, when the first of them stopped being so"},
	{clusterhealth.NodesSchedulable, "no node is cordoned; `last_change`, while it is `False`, is when the first of them was"},
}

func conditionList() string {
	var lines []string
	for _, c := range ConditionMeanings {
		lines = append(lines, "- `"+c.Name+"`: "+c.meaning+".")
	}

	return strings.Join(lines, "\n")
}
