package backupschedule

import (
	"cmp"
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/etcdbackup"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/timetable"
)

type etcdBackupScheduleModel struct {
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

	scheduleSeenModel
}

// scheduleSeenModel is what the cluster and the bucket tell of a schedule.
type scheduleSeenModel struct {
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

type scheduleEncryptionModel struct {
	Recipients types.List `tfsdk:"recipients"`
}

// controlPlaneTaint is on control planes (Kubernetes 1.36, well-known taints).
const controlPlaneTaint = "node-role.kubernetes.io/control-plane"

// unseenSchedule is what is not known before an apply.
func unseenSchedule() scheduleSeenModel {
	return scheduleSeenModel{
		ID: types.StringUnknown(), KeyPrefix: types.StringUnknown(), NextRun: timetypes.NewRFC3339Unknown(),
		LastRun:     timetypes.NewRFC3339Unknown(),
		LastSuccess: timetypes.NewRFC3339Unknown(), LastFailure: types.StringUnknown(), Active: types.Int64Unknown(),
		Kept:    types.Int64Unknown(),
		Expired: tf.TextList(nil), Drift: tf.TextList(nil),
	}
}

// Spec is the schedule in plain values. unknown is true when any of it is not known yet.
func (m etcdBackupScheduleModel) Spec(
	ctx context.Context, data *providerdata.ProviderData,
) (s schedule.Spec, unknown bool, diags diag.Diagnostics) {
	r := &tf.Reader{}
	handle, diags := data.AccessFrom(ctx, m.Cluster)

	s = schedule.Spec{
		Namespace: cmp.Or(r.Text(m.Namespace), DefaultNamespace), Name: r.Text(m.Name), Cluster: r.Text(handle.Name),
		Mark:     handleMark(r, handle),
		Schedule: r.Text(m.Schedule),
		TimeZone: cmp.Or(r.Text(m.TimeZone), timetable.DefaultZone), Suspend: r.Truth(m.Suspend, false),
		Compress: r.Text(m.Compression) == backup.Zstd, StartingDeadline: r.Duration(m.StartingDeadline),
		NodeSelector: r.TextMap(m.NodeSelector),
	}

	m.Bucket(r, &s)
	m.Pod(ctx, r, &s)

	if encryption, ok := tf.Object[scheduleEncryptionModel](ctx, r, m.Encryption); ok {
		if recipients := r.Texts(encryption.Recipients); len(recipients) > 0 {
			s.Recipient = recipients[0]
		}
	}

	return s, r.Unknown, append(diags, r.Diags...)
}

// handleMark is the mark of a cluster, empty when its secrets are not known or cannot be read.
func handleMark(r *tf.Reader, handle clusterhandle.AccessModel) string {
	bundle, err := pki.Parse([]byte(r.Text(handle.Secrets)))
	if err != nil {
		return ""
	}

	return bundle.Mark()
}

func (m etcdBackupScheduleModel) Bucket(r *tf.Reader, s *schedule.Spec) {
	r.Unknown = r.Unknown || m.S3.IsUnknown()
	b := tf.Fields{Reader: r, Attributes: m.S3}

	s.Bucket = schedule.Bucket{
		Name: b.Text("bucket"), Region: b.Text("region"), Endpoint: b.Text("endpoint"), Prefix: b.Text("prefix"),
		PathStyle: b.Truth("path_style", b.Text("endpoint") != ""), CA: b.Text("ca"),
	}
}

func (m etcdBackupScheduleModel) Pod(ctx context.Context, r *tf.Reader, s *schedule.Spec) {
	r.Unknown = r.Unknown || m.Image.IsUnknown() || m.History.IsUnknown() || m.Resources.IsUnknown()
	image, history, resources := tf.Fields{Reader: r, Attributes: m.Image}, tf.Fields{Reader: r, Attributes: m.History},
		tf.Fields{Reader: r, Attributes: m.Resources}

	s.Image = schedule.Image{
		Repository: cmp.Or(image.Text("repository"), schedule.DefaultRepository),
		Tag:        cmp.Or(image.Text("tag"), schedule.DefaultTag),
		PullSecret: image.Text("pull_secret"),
	}

	s.Successful, s.Failed = defaultHistory, defaultHistory

	for name, kept := range map[string]*int64{"successful": &s.Successful, "failed": &s.Failed} {
		if !history.Absent(name) {
			*kept = history.Number(name)
		}
	}

	for name, list := range map[string]*corev1.ResourceList{"requests": &s.Resources.Requests,
		"limits": &s.Resources.Limits} {
		if v, ok := resources.Attributes.Attributes()[name].(types.Map); ok {
			*list = clusterhandle.Quantities(r.TextMap(v))
		}
	}

	s.RunTimeout = r.Duration(m.RunTimeout)
	if m.RunTimeout.IsNull() {
		s.RunTimeout = time.Hour
	}

	s.Tolerations = clusterhandle.TolerationsOf(ctx, r, m.Tolerations)
	if m.Tolerations.IsNull() {
		s.Tolerations = defaultTolerations()
	}
}

func defaultTolerations() []corev1.Toleration {
	return []corev1.Toleration{{Key: controlPlaneTaint, Operator: corev1.TolerationOpExists,
		Effect: corev1.TaintEffectNoSchedule}}
}

// retention is what retain says; ok is false when it says nothing.
func (m etcdBackupScheduleModel) retention(ctx context.Context) (r backup.Retention, ok bool) {
	retain, ok := tf.Object[etcdbackup.RetainModel](ctx, &tf.Reader{}, m.Retain)
	if !ok || retain.Count.IsUnknown() || retain.MinAge.IsUnknown() {
		return backup.Retention{}, false
	}

	return backup.Retention{Count: int(retain.Count.ValueInt64()), MinAge: (&tf.Reader{}).Duration(retain.MinAge)}, true
}

// scheduleCredentials are the access key of a configuration; nothing else has it.
func scheduleCredentials(ctx context.Context, config tfsdk.Config) (schedule.Credentials, diag.Diagnostics) {
	var bucket types.Object

	diags := config.GetAttribute(ctx, path.Root("s3"), &bucket)
	b := tf.Fields{Reader: &tf.Reader{}, Attributes: bucket}

	return schedule.Credentials{
		AccessKeyID: b.Secret("access_key_id"), SecretAccessKey: b.Secret("secret_access_key"),
		SessionToken: b.Secret("session_token"),
	}, diags
}

// deadline bounds an operation by its timeout.
func (m etcdBackupScheduleModel) deadline(
	ctx context.Context, op tf.Operation, diags *diag.Diagnostics,
) (context.Context, context.CancelFunc) {
	return tf.DeadlineOf(ctx, m.Timeouts, op, diags)
}

// Fill puts what was observed in the cluster into the model.
func (m *etcdBackupScheduleModel) Fill(s schedule.Spec, seen scheduleSeen) {
	m.ID = types.StringValue(s.Cluster + "/" + s.Namespace + "/" + s.Name)
	m.KeyPrefix = types.StringValue(s.KeyPrefix())
	m.NextRun = tf.MomentOrNull(s.NextRun(time.Now()))
	m.LastRun, m.LastSuccess = tf.MomentOrNull(seen.facts.LastRun), tf.MomentOrNull(seen.facts.LastSuccess)
	m.LastFailure = tf.TextOrNull(seen.facts.LastFailure.String())
	m.Active = types.Int64Value(seen.facts.Active)
	m.Drift = tf.TextList(seen.drift)
}

// scheduleType is the type of a nested attribute.
func scheduleType(ctx context.Context, name string) types.ObjectType {
	object, ok := etcdBackupScheduleAttributes(ctx)[name].GetType().(types.ObjectType)
	if !ok {
		return types.ObjectType{}
	}

	return object
}
