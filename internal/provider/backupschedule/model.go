package backupschedule

import (
	"cmp"
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/timetable"
)

type scheduleModel struct {
	Cluster          types.Object   `tfsdk:"cluster"`
	Name             types.String   `tfsdk:"name"`
	Namespace        types.String   `tfsdk:"namespace"`
	CreateNamespace  types.Bool     `tfsdk:"create_namespace"`
	Schedule         types.String   `tfsdk:"schedule"`
	TimeZone         types.String   `tfsdk:"time_zone"`
	Suspend          types.Bool     `tfsdk:"suspend"`
	S3               types.Object   `tfsdk:"s3"`
	Encryption       types.Object   `tfsdk:"encryption"`
	Compression      types.String   `tfsdk:"compression"`
	Retain           types.Object   `tfsdk:"retain"`
	RunNow           types.String   `tfsdk:"run_now"`
	Image            types.Object   `tfsdk:"image"`
	History          types.Object   `tfsdk:"history"`
	StartingDeadline tf.Duration    `tfsdk:"starting_deadline"`
	RunTimeout       tf.Duration    `tfsdk:"run_timeout"`
	Resources        types.Object   `tfsdk:"resources"`
	NodeSelector     types.Map      `tfsdk:"node_selector"`
	Tolerations      types.List     `tfsdk:"tolerations"`
	Timeouts         timeouts.Value `tfsdk:"timeouts"`

	seenModel
}

// seenModel is what the cluster and the bucket report of a schedule.
type seenModel struct {
	ID          types.String      `tfsdk:"id"`
	KeyPrefix   types.String      `tfsdk:"key_prefix"`
	NextRun     timetypes.RFC3339 `tfsdk:"next_run"`
	LastRun     timetypes.RFC3339 `tfsdk:"last_run"`
	LastSuccess timetypes.RFC3339 `tfsdk:"last_success"`
	LastFailure types.String      `tfsdk:"last_failure"`
	Active      types.Int64       `tfsdk:"active"`
	Kept        types.Int64       `tfsdk:"kept"`
	Expired     types.List        `tfsdk:"expired"`
	Drift       types.List        `tfsdk:"drift"`
}

// unseen is what is unknown before an apply.
func unseen() seenModel {
	moment := timetypes.NewRFC3339Unknown()

	return seenModel{
		ID: types.StringUnknown(), KeyPrefix: types.StringUnknown(), NextRun: moment, LastRun: moment, LastSuccess: moment,
		LastFailure: types.StringUnknown(), Active: types.Int64Unknown(), Kept: types.Int64Unknown(),
		Expired: tf.TextList(nil), Drift: tf.TextList(nil),
	}
}

// forecast fills in what is known of a schedule before an apply.
func (m *seenModel) forecast(s schedule.Spec) {
	var known seenModel

	known.fill(s, observed{})
	m.ID, m.KeyPrefix = known.ID, known.KeyPrefix

	if s.Suspend {
		m.NextRun = known.NextRun // it is null
	}
}

// fill takes over what was observed in the cluster.
func (m *seenModel) fill(s schedule.Spec, seen observed) {
	m.ID = types.StringValue(s.Cluster + "/" + s.Namespace + "/" + s.Name)
	m.KeyPrefix = types.StringValue(s.KeyPrefix())
	m.NextRun = tf.MomentOrNull(s.NextRun(time.Now()))
	m.LastRun, m.LastSuccess = tf.MomentOrNull(seen.LastRun), tf.MomentOrNull(seen.LastSuccess)
	m.LastFailure = tf.TextOrNull(seen.LastFailure.String())
	m.Active = types.Int64Value(seen.Active)
	m.Drift = tf.TextList(seen.drift)
}

// spec is the schedule in plain values. unknown is true when any part is unknown.
func (m scheduleModel) spec(
	ctx context.Context, data *providerdata.ProviderData,
) (s schedule.Spec, unknown bool, diags diag.Diagnostics) {
	r := &tf.Reader{}
	handle, diags := data.AccessFrom(ctx, m.Cluster)
	bucket, image, history, resources := r.Fields(m.S3), r.Fields(m.Image), r.Fields(m.History), r.Fields(m.Resources)

	s = schedule.Spec{
		Namespace: cmp.Or(r.Text(m.Namespace), DefaultNamespace), Name: r.Text(m.Name), Cluster: r.Text(handle.Name),
		Schedule: r.Text(m.Schedule), TimeZone: cmp.Or(r.Text(m.TimeZone), timetable.DefaultZone),
		Suspend: r.Truth(m.Suspend, false), StartingDeadline: r.Duration(m.StartingDeadline),
		RunTimeout: cmp.Or(r.Duration(m.RunTimeout), time.Hour),
		Bucket: schedule.Bucket{
			Name: bucket.Text("bucket"), Region: bucket.Text("region"), Endpoint: bucket.Text("endpoint"),
			Prefix: bucket.Text("prefix"), PathStyle: bucket.Truth("path_style", bucket.Text("endpoint") != ""),
			CA: bucket.Text("ca"),
		},
		Compress: r.Text(m.Compression) == backup.Zstd,
		Image: schedule.Image{
			Repository: cmp.Or(image.Text("repository"), schedule.DefaultRepository),
			Tag:        cmp.Or(image.Text("tag"), schedule.DefaultTag), PullSecret: image.Text("pull_secret"),
		},
		Successful: history.Number("successful", defaultHistory), Failed: history.Number("failed", defaultHistory),
		Resources: corev1.ResourceRequirements{
			Requests: clusterhandle.Quantities(resources.TextMap("requests")),
			Limits:   clusterhandle.Quantities(resources.TextMap("limits")),
		},
		NodeSelector: r.TextMap(m.NodeSelector), Tolerations: clusterhandle.TolerationsOf(ctx, r, m.Tolerations),
	}

	// Mistakes in the secrets are reported where they are used.
	if bundle, err := pki.Parse([]byte(r.Text(handle.Secrets))); err == nil {
		s.Mark = bundle.Mark()
	}

	if recipients := r.Fields(m.Encryption).Texts("recipients"); len(recipients) > 0 {
		s.Recipient = recipients[0]
	}

	if m.Tolerations.IsNull() {
		s.Tolerations = []corev1.Toleration{{Key: api.ControlPlaneLabel, Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffectNoSchedule}}
	}

	return s, r.Unknown, append(diags, r.Diags...)
}
