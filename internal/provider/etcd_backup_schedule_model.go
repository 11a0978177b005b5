package provider

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
	StartingDeadline duration       `tfsdk:"starting_deadline"`
	RunTimeout       duration       `tfsdk:"run_timeout"`
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
	Disabled   types.Bool `tfsdk:"disabled"`
}

type tolerationModel struct {
	Key      types.String `tfsdk:"key"`
	Operator types.String `tfsdk:"operator"`
	Value    types.String `tfsdk:"value"`
	Effect   types.String `tfsdk:"effect"`
	Seconds  types.Int64  `tfsdk:"toleration_seconds"`
}

// controlPlaneTaint is on control planes (Kubernetes 1.36, well-known taints).
const controlPlaneTaint = "node-role.kubernetes.io/control-plane"

// unseenSchedule is what is not known before an apply.
func unseenSchedule() scheduleSeenModel {
	return scheduleSeenModel{
		ID: types.StringUnknown(), KeyPrefix: types.StringUnknown(), NextRun: timetypes.NewRFC3339Unknown(), LastRun: timetypes.NewRFC3339Unknown(),
		LastSuccess: timetypes.NewRFC3339Unknown(), LastFailure: types.StringUnknown(), Active: types.Int64Unknown(), Kept: types.Int64Unknown(),
		Expired: textList(nil), Drift: textList(nil),
	}
}

// spec is the schedule in plain values. unknown is true when any of it is not known yet.
func (m etcdBackupScheduleModel) spec(ctx context.Context) (s schedule.Spec, unknown bool, diags diag.Diagnostics) {
	r := &reader{}
	handle, diags := handleFrom(ctx, m.Cluster)

	s = schedule.Spec{
		Namespace: cmp.Or(r.text(m.Namespace), defaultScheduleNamespace), Name: r.text(m.Name), Cluster: r.text(handle.Name), Mark: handleMark(r, handle),
		Schedule: r.text(m.Schedule), TimeZone: r.text(m.TimeZone), Suspend: r.truth(m.Suspend, false),
		Compress: r.text(m.Compression) == compressionZstd, StartingDeadline: r.duration(m.StartingDeadline), NodeSelector: r.textMap(m.NodeSelector),
	}

	m.bucket(r, &s)
	m.pod(ctx, r, &s)

	if encryption, ok := object[scheduleEncryptionModel](ctx, r, m.Encryption); ok {
		recipients := r.texts(encryption.Recipients)
		if disabled := r.truth(encryption.Disabled, false); len(recipients) > 0 && !disabled {
			s.Recipient = recipients[0]
		}
	}

	return s, r.unknown, append(diags, r.diags...)
}

// handleMark is the mark of a cluster, empty when its secrets are not known or cannot be read.
func handleMark(r *reader, handle handleModel) string {
	bundle, err := pki.Parse([]byte(r.text(handle.Secrets)))
	if err != nil {
		return ""
	}

	return bundle.Mark()
}

func (m etcdBackupScheduleModel) bucket(r *reader, s *schedule.Spec) {
	r.unknown = r.unknown || m.S3.IsUnknown()
	b := fields{r, m.S3}

	s.Bucket = schedule.Bucket{
		Name: b.text("bucket"), Region: b.text("region"), Endpoint: b.text("endpoint"), Prefix: b.text("prefix"),
		PathStyle: b.truth("path_style", b.text("endpoint") != ""), CA: b.text("ca"),
	}
}

func (m etcdBackupScheduleModel) pod(ctx context.Context, r *reader, s *schedule.Spec) {
	r.unknown = r.unknown || m.Image.IsUnknown() || m.History.IsUnknown() || m.Resources.IsUnknown()
	image, history, resources := fields{r, m.Image}, fields{r, m.History}, fields{r, m.Resources}

	s.Image = schedule.Image{
		Repository: cmp.Or(image.text("repository"), schedule.DefaultRepository), Tag: cmp.Or(image.text("tag"), schedule.DefaultTag),
		PullSecret: image.text("pull_secret"),
	}

	s.Successful, s.Failed = defaultHistory, defaultHistory

	for name, kept := range map[string]*int64{"successful": &s.Successful, "failed": &s.Failed} {
		if !history.absent(name) {
			*kept = history.number(name)
		}
	}

	for name, list := range map[string]*corev1.ResourceList{"requests": &s.Resources.Requests, "limits": &s.Resources.Limits} {
		if v, ok := resources.attributes.Attributes()[name].(types.Map); ok {
			*list = quantities(r.textMap(v))
		}
	}

	s.RunTimeout = r.duration(m.RunTimeout)
	if m.RunTimeout.IsNull() {
		s.RunTimeout = time.Hour
	}

	s.Tolerations = tolerationsOf(ctx, r, m.Tolerations)
	if m.Tolerations.IsNull() {
		s.Tolerations = defaultTolerations()
	}
}

func defaultTolerations() []corev1.Toleration {
	return []corev1.Toleration{{Key: controlPlaneTaint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
}

func (r *reader) duration(v duration) time.Duration {
	r.unknown = r.unknown || v.IsUnknown()

	if v.IsNull() || v.IsUnknown() {
		return 0
	}

	d, diags := v.ValueGoDuration()
	r.diags.Append(diags...)

	return d
}

func (r *reader) textMap(v types.Map) map[string]string {
	r.unknown = r.unknown || v.IsUnknown()

	var out map[string]string

	for key, element := range v.Elements() {
		if out == nil {
			out = map[string]string{}
		}

		if text, ok := element.(types.String); ok {
			out[key] = r.text(text)
		}
	}

	return out
}

// retention is what retain says; ok is false when it says nothing.
func (m etcdBackupScheduleModel) retention(ctx context.Context) (r backup.Retention, ok bool) {
	retain, ok := object[retainModel](ctx, &reader{}, m.Retain)
	if !ok || retain.Count.IsUnknown() || retain.MinAge.IsUnknown() {
		return backup.Retention{}, false
	}

	return backup.Retention{Count: int(retain.Count.ValueInt64()), MinAge: (&reader{}).duration(retain.MinAge)}, true
}

// scheduleCredentials are the access key of a configuration; nothing else has it.
func scheduleCredentials(ctx context.Context, config tfsdk.Config) (schedule.Credentials, diag.Diagnostics) {
	var bucket types.Object

	diags := config.GetAttribute(ctx, path.Root("s3"), &bucket)
	b := fields{&reader{}, bucket}

	return schedule.Credentials{
		AccessKeyID: b.text("access_key_id"), SecretAccessKey: b.text("secret_access_key"), SessionToken: b.text("session_token"),
	}, diags
}

// deadline bounds an operation by its timeout.
func (m etcdBackupScheduleModel) deadline(ctx context.Context, op operation, diags *diag.Diagnostics) (context.Context, context.CancelFunc) {
	return deadlineOf(ctx, m.Timeouts, op, diags)
}

// fill puts what was observed in the cluster into the model.
func (m *etcdBackupScheduleModel) fill(s schedule.Spec, seen scheduleSeen) {
	m.ID = types.StringValue(s.Cluster + "/" + s.Namespace + "/" + s.Name)
	m.KeyPrefix = types.StringValue(s.KeyPrefix())
	m.NextRun = momentOrNull(s.NextRun(time.Now()))
	m.LastRun, m.LastSuccess = momentOrNull(seen.facts.LastRun), momentOrNull(seen.facts.LastSuccess)
	m.LastFailure = textOrNull(seen.facts.LastFailure.String())
	m.Active = types.Int64Value(seen.facts.Active)
	m.Drift = textList(seen.drift)
}

func momentOrNull(at time.Time) timetypes.RFC3339 {
	if at.IsZero() {
		return timetypes.NewRFC3339Null()
	}

	return timetypes.NewRFC3339TimeValue(at)
}

// scheduleType is the type of a nested attribute.
func scheduleType(ctx context.Context, name string) types.ObjectType {
	object, ok := etcdBackupScheduleAttributes(ctx)[name].GetType().(types.ObjectType)
	if !ok {
		return types.ObjectType{}
	}

	return object
}
