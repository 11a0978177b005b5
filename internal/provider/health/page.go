package health

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	clusterhealth "github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/clustermetrics"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/statuspage"
)

// pageAttributes are the page, and the arguments for what only resources and stores know.
func pageAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"html": tf.ComputedString("The report as a web page: one file, light or dark, printable, which runs no code and " +
			"loads nothing ([guide](../guides/observing.md#status-page)). It shows machines, versions, certificates and " +
			"conditions, and what `pools`, `drift`, `backups` and `operations` contain. It contains the date, so an output of " +
			"it changes once a day."),
		"metrics": tf.ComputedString("The observation as OpenMetrics text, such as for the textfile collector of " +
			"node_exporter ([guide](../guides/metrics.md)): conditions, machines, etcd, certificates, and what `drift`, `backups` and " +
			"`operations` contain. It has no time of the read, so it changes when the cluster does. It contains names, " +
			"addresses and versions, no reasons and no secrets."),
		"pools": schema.MapAttribute{Optional: true, ElementType: types.ListType{ElemType: types.StringType},
			MarkdownDescription: "Names of the workers by pool, such as `{ batch = keys(talosop_worker.batch.machines) }`, " +
				"which group the workers in `html`. Nodes do not report their pools. Default: one group."},
		"drift": schema.MapAttribute{Optional: true, ElementType: types.ListType{ElemType: types.StringType},
			MarkdownDescription: "Differences of machines from the last apply, by name, for `html`: `drift` in `observed` of " +
				"the resources, such as `{ for name, m in talosop_worker.batch.observed : name => m.drift }`. Default: the page " +
				"has no drift."},
		"backups": tf.OptionalObjectList("Snapshots of etcd for `html`, newest first: `backups` of `talosop_etcd_backups`. "+
			"Default: the page has no backups.", map[string]schema.Attribute{
			"key": tf.RequiredString("Key of the snapshot."),
			"time": schema.StringAttribute{Required: true, CustomType: timetypes.RFC3339Type{},
				MarkdownDescription: "When it was taken (RFC 3339)."},
			"restorable": tf.OptionalBool("Whether it can be restored. Default: `true`."),
			"reason":     tf.OptionalString("Why it cannot be restored."),
		}),
	}
}

// backupModel is a snapshot in the arguments.
type backupModel struct {
	Key        types.String      `tfsdk:"key"`
	Time       timetypes.RFC3339 `tfsdk:"time"`
	Restorable types.Bool        `tfsdk:"restorable"`
	Reason     types.String      `tfsdk:"reason"`
}

// observation is what was observed and what the arguments add.
func (m *clusterHealthModel) observation(
	ctx context.Context, seen examined, health clusterhealth.Cluster,
) (statuspage.Observation, diag.Diagnostics) {
	o := statuspage.Observation{Name: seen.want.Name, Endpoint: seen.want.Endpoint, Health: health,
		Talos: seen.talos, Kubernetes: seen.kubernetes, Operations: m.operations()}

	diags := m.Pools.ElementsAs(ctx, &o.Pools, false)
	diags.Append(m.Drift.ElementsAs(ctx, &o.Drift, false)...)

	var backups []backupModel

	diags.Append(m.Backups.ElementsAs(ctx, &backups, false)...)

	for _, b := range backups {
		taken, more := b.Time.ValueRFC3339Time()
		diags.Append(more...)

		shown := statuspage.Backup{Key: b.Key.ValueString(), Time: taken}
		if b.Restorable.Equal(types.BoolValue(false)) {
			shown.Problem = "it cannot be restored"
			if reason := b.Reason.ValueString(); reason != "" {
				shown.Problem = reason
			}
		}

		o.Backups = append(o.Backups, shown)
	}

	if !m.Backups.IsNull() && o.Backups == nil {
		o.Backups = []statuspage.Backup{}
	}

	return o, diags
}

// Paint puts the page and the metrics into the model.
func (m *clusterHealthModel) Paint(o statuspage.Observation, at time.Time) diag.Diagnostics {
	var diags diag.Diagnostics

	html, err := statuspage.HTML(statuspage.Observed(o, at))
	if err != nil {
		diags.Append(tf.Bug("the status page: " + err.Error()))
	}

	metrics, err := clustermetrics.Text(o)
	if err != nil {
		diags.Append(tf.Bug("the metrics: " + err.Error()))
	}

	m.HTML, m.Metrics = types.StringValue(html), types.StringValue(metrics)

	return diags
}
