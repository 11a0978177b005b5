package backupschedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	corev1 "k8s.io/api/core/v1"

	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/etcdbackup"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// importOfSchedule is the import id of a schedule.
const importOfSchedule = `{"secrets": "secrets.yaml", "control_plane": {"cp-1": "10.0.0.11"}, "name": "nightly"}`

// scheduleImport is an import id: where the secrets and the control planes are, as for machines,
// and which schedule it is.
type scheduleImport struct {
	Secrets      string            `json:"secrets"`
	ControlPlane map[string]string `json:"control_plane"`
	Namespace    string            `json:"namespace"`
	Name         string            `json:"name"`
}

func readScheduleImport(id string) (scheduleImport, error) {
	var request scheduleImport

	if err := machines.DecodeImport(id, &request); err != nil {
		return request, err
	}

	if request.Secrets == "" || request.Name == "" || len(request.ControlPlane) == 0 {
		return request, errors.New("secrets, control_plane or name is missing")
	}

	return request, nil
}

// ImportState reads a schedule from its objects. Its access key is not read: it is write-only.
func (r *etcdBackupScheduleResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	request, err := readScheduleImport(req.ID)
	if err != nil {
		resp.Diagnostics.Append(notImported("read the import id", err))

		return
	}

	bundle, err := machines.ReadBundleFile(request.Secrets)

	var text []byte
	if err == nil {
		text, err = bundle.YAML()
	}

	if err != nil {
		resp.Diagnostics.Append(notImported("read the secrets of the cluster", err))

		return
	}

	file := machines.SecretsFile{Bundle: bundle, Text: string(text)}
	ctx = tf.MaskSecrets(ctx, file.Text)

	planes, diags := r.Recognise(ctx, request.ControlPlane, file, cluster.ControlPlane)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	settings, _, err := machines.SettingsOfAll(planes, file)
	if err != nil {
		resp.Diagnostics.Append(notImported("read the configurations of the control planes", err))

		return
	}

	model := importedSchedule(ctx, request)

	model.Cluster, diags = machines.HandleSeen(ctx, settings, file, planes)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	if err := r.readSchedule(ctx, &model, bundle, settings.Name); err != nil {
		resp.Diagnostics.Append(notImported(fmt.Sprintf("read schedule %q", request.Name), err))

		return
	}

	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func notImported(attempted string, err error) diag.Diagnostic {
	return tf.Unable("import", scheduleObject, tf.Report{
		Attempted: attempted, Cause: strings.Split(err.Error(), "\n"), Now: []string{"nothing was imported"},
		Next: "Give a JSON object such as " + importOfSchedule + ", with namespace where it is not " + defaultScheduleNamespace + ".",
	})
}

// importedSchedule is a model that says nothing but what the id does.
func importedSchedule(ctx context.Context, request scheduleImport) etcdBackupScheduleModel {
	null := func(name string) types.Object { return types.ObjectNull(scheduleType(ctx, name).AttrTypes) }

	tolerations, _ := etcdBackupScheduleAttributes(ctx)["tolerations"].GetType().(types.ListType)

	return etcdBackupScheduleModel{
		Name: types.StringValue(request.Name), Namespace: tf.TextOrNull(request.Namespace), S3: null("s3"), Encryption: null("encryption"), Retain: null("retain"),
		Image: null("image"), History: null("history"), Resources: null("resources"), NodeSelector: types.MapNull(types.StringType),
		Tolerations: types.ListNull(tolerations.ElemType), StartingDeadline: tf.Duration{GoDuration: timetypes.NewGoDurationNull()}, RunTimeout: tf.Duration{GoDuration: timetypes.NewGoDurationNull()},
		Timeouts: tf.NoTimeouts(ctx),
	}
}

// readSchedule fills a model from the objects in its cluster.
func (r *etcdBackupScheduleResource) readSchedule(ctx context.Context, m *etcdBackupScheduleModel, bundle *pki.Bundle, name string) error {
	s, closing, diags := r.scheduler(ctx, *m)
	if diags.HasError() {
		return errors.New(diags.Errors()[0].Detail())
	}

	defer closing()

	cronJob, err := s.API.GetObject(ctx, kubernetes.ReferenceTo(s.Spec.CronJob()))
	if err == nil && cronJob == nil {
		err = fmt.Errorf("there is no %s", kubernetes.ReferenceTo(s.Spec.CronJob()))
	}

	if err != nil {
		return err
	}

	if !schedule.Owned(cronJob, s.Spec.Name) {
		return errors.New("its CronJob was not made by talosop")
	}

	secret, err := s.API.GetObject(ctx, kubernetes.ReferenceTo(s.Spec.Secret(schedule.Credentials{})))
	if err != nil {
		return err
	}

	if s.Spec, err = schedule.SpecOf(cronJob, secret, name, bundle.Mark()); err != nil {
		return err
	}

	if err := m.take(ctx, s.Spec); err != nil {
		return err
	}

	seen, err := s.observe(ctx)

	m.Kept, m.Expired = types.Int64Null(), tf.TextList(nil)
	m.Fill(s.Spec, seen)

	return err
}

// take puts a schedule that was read into the model, leaving out what is the default.
func (m *etcdBackupScheduleModel) take(ctx context.Context, s schedule.Spec) error {
	m.Schedule, m.TimeZone, m.Suspend = types.StringValue(s.Schedule), tf.TextOrNull(s.TimeZone), tf.TrueOrNull(s.Suspend)
	m.StartingDeadline = durationOrNull(s.StartingDeadline, 0)
	m.RunTimeout = durationOrNull(s.RunTimeout, time.Hour)

	if s.Compress {
		m.Compression = types.StringValue(etcdbackup.CompressionZstd)
	}

	if len(s.NodeSelector) > 0 {
		m.NodeSelector = textMapOf(s.NodeSelector)
	}

	image, history, resources := map[string]attr.Value{}, map[string]attr.Value{}, map[string]attr.Value{}
	said(image, "repository", types.StringValue(s.Image.Repository), s.Image.Repository == schedule.DefaultRepository)
	said(image, "tag", types.StringValue(s.Image.Tag), s.Image.Tag == schedule.DefaultTag)
	said(image, "pull_secret", types.StringValue(s.Image.PullSecret), s.Image.PullSecret == "")
	said(history, "successful", types.Int64Value(s.Successful), s.Successful == defaultHistory)
	said(history, "failed", types.Int64Value(s.Failed), s.Failed == defaultHistory)
	said(resources, "requests", quantityMap(s.Resources.Requests), len(s.Resources.Requests) == 0)
	said(resources, "limits", quantityMap(s.Resources.Limits), len(s.Resources.Limits) == 0)

	var diags diag.Diagnostics

	for name, object := range map[string]struct {
		To     *types.Object
		values map[string]attr.Value
	}{
		"s3": {&m.S3, bucketSaid(s.Bucket)}, "encryption": {&m.Encryption, encryptionSaid(s.Recipient)}, "image": {&m.Image, image},
		"history": {&m.History, history}, "resources": {&m.Resources, resources},
	} {
		if len(object.values) > 0 {
			var more diag.Diagnostics

			*object.To, more = completed(ctx, scheduleType(ctx, name), object.values)
			diags.Append(more...)
		}
	}

	if !slices.Equal(s.Tolerations, defaultTolerations()) {
		diags.Append(m.takeTolerations(ctx, s)...)
	}

	if diags.HasError() {
		return errors.New(diags.Errors()[0].Detail())
	}

	return nil
}

// said keeps a value that is not the default.
func said(values map[string]attr.Value, name string, value attr.Value, isDefault bool) {
	if !isDefault {
		values[name] = value
	}
}

func bucketSaid(b schedule.Bucket) map[string]attr.Value {
	bucket := map[string]attr.Value{
		"bucket": types.StringValue(b.Name), "endpoint": tf.TextOrNull(b.Endpoint), "prefix": tf.TextOrNull(b.Prefix), "ca": tf.TextOrNull(b.CA),
	}
	said(bucket, "region", tf.TextOrNull(b.Region), b.Endpoint != "" && b.Region == schedule.DefaultRegion)
	said(bucket, "path_style", types.BoolValue(b.PathStyle), b.PathStyle == (b.Endpoint != ""))

	return bucket
}

func encryptionSaid(recipient string) map[string]attr.Value {
	if recipient == "" {
		return map[string]attr.Value{"disabled": types.BoolValue(true)}
	}

	return map[string]attr.Value{"recipients": tf.TextList([]string{recipient})}
}

func (m *etcdBackupScheduleModel) takeTolerations(ctx context.Context, s schedule.Spec) (diags diag.Diagnostics) {
	tolerations := []tf.TolerationModel{}

	for _, t := range s.Tolerations {
		tolerations = append(tolerations, tf.TolerationModel{
			Key: tf.TextOrNull(t.Key), Operator: tf.TextOrNull(string(t.Operator)), Value: tf.TextOrNull(t.Value), Effect: tf.TextOrNull(string(t.Effect)),
			Seconds: types.Int64PointerValue(t.TolerationSeconds),
		})
	}

	m.Tolerations, diags = types.ListValueFrom(ctx, m.Tolerations.ElementType(ctx), tolerations)

	return diags
}

// completed is an object with null for what is not said.
func completed(ctx context.Context, of types.ObjectType, values map[string]attr.Value) (types.Object, diag.Diagnostics) {
	all := map[string]attr.Value{}

	for name, t := range of.AttrTypes {
		null, err := t.ValueFromTerraform(ctx, tftypes.NewValue(t.TerraformType(ctx), nil))
		if err != nil {
			return types.ObjectNull(of.AttrTypes), diag.Diagnostics{diag.NewErrorDiagnostic("Unable to import "+scheduleObject, err.Error())}
		}

		all[name] = null
	}

	maps.Copy(all, values)

	return types.ObjectValue(of.AttrTypes, all)
}

func quantityMap(list corev1.ResourceList) types.Map {
	texts := map[string]string{}
	for name, quantity := range list {
		texts[string(name)] = quantity.String()
	}

	return textMapOf(texts)
}

func durationOrNull(d, fallback time.Duration) tf.Duration {
	if d == fallback {
		return tf.Duration{GoDuration: timetypes.NewGoDurationNull()}
	}

	return tf.Duration{GoDuration: timetypes.NewGoDurationValue(d)}
}

func textMapOf(m map[string]string) types.Map {
	values := map[string]attr.Value{}
	for key, text := range m {
		values[key] = types.StringValue(text)
	}

	return types.MapValueMust(types.StringType, values)
}
