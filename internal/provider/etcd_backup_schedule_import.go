package provider

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

	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
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

	if err := decodeImport(id, &request); err != nil {
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

	bundle, err := readBundleFile(request.Secrets)

	var text []byte
	if err == nil {
		text, err = bundle.YAML()
	}

	if err != nil {
		resp.Diagnostics.Append(notImported("read the secrets of the cluster", err))

		return
	}

	file := secretsFile{bundle: bundle, text: string(text)}
	ctx = maskSecrets(ctx, file.text)

	planes, diags := r.recognise(ctx, request.ControlPlane, file, cluster.ControlPlane)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	settings, _, err := settingsOfAll(planes, file)
	if err != nil {
		resp.Diagnostics.Append(notImported("read the configurations of the control planes", err))

		return
	}

	model := importedSchedule(ctx, request)

	model.Cluster, diags = handleSeen(ctx, settings, file, planes)
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
	return unable("import", scheduleObject, report{
		Attempted: attempted, Cause: strings.Split(err.Error(), "\n"), Now: []string{"nothing was imported"},
		Next: "Give a JSON object such as " + importOfSchedule + ", with namespace where it is not " + defaultScheduleNamespace + ".",
	})
}

// importedSchedule is a model that says nothing but what the id does.
func importedSchedule(ctx context.Context, request scheduleImport) etcdBackupScheduleModel {
	null := func(name string) types.Object { return types.ObjectNull(scheduleType(ctx, name).AttrTypes) }

	tolerations, _ := etcdBackupScheduleAttributes(ctx)["tolerations"].GetType().(types.ListType)

	return etcdBackupScheduleModel{
		Name: types.StringValue(request.Name), Namespace: textOrNull(request.Namespace), S3: null("s3"), Encryption: null("encryption"), Retain: null("retain"),
		Image: null("image"), History: null("history"), Resources: null("resources"), NodeSelector: types.MapNull(types.StringType),
		Tolerations: types.ListNull(tolerations.ElemType), StartingDeadline: duration{timetypes.NewGoDurationNull()}, RunTimeout: duration{timetypes.NewGoDurationNull()},
		Timeouts: noTimeouts(ctx),
	}
}

// readSchedule fills a model from the objects in its cluster.
func (r *etcdBackupScheduleResource) readSchedule(ctx context.Context, m *etcdBackupScheduleModel, bundle *pki.Bundle, name string) error {
	s, closing, diags := r.scheduler(ctx, *m)
	if diags.HasError() {
		return errors.New(diags.Errors()[0].Detail())
	}

	defer closing()

	cronJob, err := s.api.GetObject(ctx, kubernetes.ReferenceTo(s.spec.CronJob()))
	if err == nil && cronJob == nil {
		err = fmt.Errorf("there is no %s", kubernetes.ReferenceTo(s.spec.CronJob()))
	}

	if err != nil {
		return err
	}

	if !schedule.Owned(cronJob, s.spec.Name) {
		return errors.New("its CronJob was not made by talosop")
	}

	secret, err := s.api.GetObject(ctx, kubernetes.ReferenceTo(s.spec.Secret(schedule.Credentials{})))
	if err != nil {
		return err
	}

	if s.spec, err = schedule.SpecOf(cronJob, secret, name, bundle.Mark()); err != nil {
		return err
	}

	if err := m.take(ctx, s.spec); err != nil {
		return err
	}

	seen, err := s.observe(ctx)
	if err != nil {
		return err
	}

	m.Kept, m.Expired = types.Int64Null(), textList(nil)

	return m.fill(s.spec, seen, time.Now())
}

// take puts a schedule that was read into the model, leaving out what is the default.
func (m *etcdBackupScheduleModel) take(ctx context.Context, s schedule.Spec) error {
	m.Schedule, m.TimeZone, m.Suspend = types.StringValue(s.Schedule), textOrNull(s.TimeZone), trueOrNull(s.Suspend)
	m.StartingDeadline = durationOrNull(s.StartingDeadline, 0)
	m.RunTimeout = durationOrNull(s.RunTimeout, time.Hour)

	if s.Compress {
		m.Compression = types.StringValue(compressionZstd)
	}

	if len(s.NodeSelector) > 0 {
		m.NodeSelector = textMapOf(s.NodeSelector)
	}

	b := s.Bucket
	bucket := map[string]attr.Value{
		"bucket": types.StringValue(b.Name), "region": textOrNull(b.Region), "endpoint": textOrNull(b.Endpoint),
		"prefix": textOrNull(b.Prefix), "ca": textOrNull(b.CA),
	}

	if b.PathStyle != (b.Endpoint != "") {
		bucket["path_style"] = types.BoolValue(b.PathStyle)
	}

	if b.Endpoint != "" && b.Region == schedule.DefaultRegion {
		bucket["region"] = types.StringNull()
	}

	encryption := map[string]attr.Value{"recipients": listOrNull(nil), "disabled": types.BoolValue(true)}
	if s.Recipient != "" {
		encryption = map[string]attr.Value{"recipients": textList([]string{s.Recipient})}
	}

	diags := m.takeObjects(ctx, s, bucket, encryption)
	if diags.HasError() {
		return errors.New(diags.Errors()[0].Detail())
	}

	return nil
}

func (m *etcdBackupScheduleModel) takeObjects(ctx context.Context, s schedule.Spec, bucket, encryption map[string]attr.Value) (diags diag.Diagnostics) {
	image, history, resources := map[string]attr.Value{}, map[string]attr.Value{}, map[string]attr.Value{}

	for name, text := range map[string][2]string{
		"repository": {s.Image.Repository, schedule.DefaultRepository}, "tag": {s.Image.Tag, schedule.DefaultTag}, "pull_secret": {s.Image.PullSecret, ""},
	} {
		if text[0] != text[1] {
			image[name] = types.StringValue(text[0])
		}
	}

	for name, kept := range map[string]int64{"successful": s.Successful, "failed": s.Failed} {
		if kept != defaultHistory {
			history[name] = types.Int64Value(kept)
		}
	}

	for name, quantities := range map[string]map[string]string{"requests": s.Requests, "limits": s.Limits} {
		if len(quantities) > 0 {
			resources[name] = textMapOf(quantities)
		}
	}

	for name, values := range map[string]map[string]attr.Value{
		"s3": bucket, "encryption": encryption, "image": image, "history": history, "resources": resources,
	} {
		if len(values) == 0 {
			continue
		}

		object, more := completed(scheduleType(ctx, name), values)
		diags.Append(more...)

		switch name {
		case "s3":
			m.S3 = object
		case "encryption":
			m.Encryption = object
		case "image":
			m.Image = object
		case "history":
			m.History = object
		case "resources":
			m.Resources = object
		}
	}

	if !slices.Equal(s.Tolerations, defaultTolerations()) {
		diags.Append(m.takeTolerations(ctx, s)...)
	}

	return diags
}

func (m *etcdBackupScheduleModel) takeTolerations(ctx context.Context, s schedule.Spec) diag.Diagnostics {
	tolerations := []tolerationModel{}

	for _, t := range s.Tolerations {
		tolerations = append(tolerations, tolerationModel{
			Key: textOrNull(t.Key), Operator: textOrNull(t.Operator), Value: textOrNull(t.Value), Effect: textOrNull(t.Effect),
			Seconds: types.Int64PointerValue(t.Seconds),
		})
	}

	list, diags := types.ListValueFrom(ctx, m.Tolerations.ElementType(ctx), tolerations)
	m.Tolerations = list

	return diags
}

// completed is an object with null for what is not said.
func completed(of types.ObjectType, values map[string]attr.Value) (types.Object, diag.Diagnostics) {
	all := map[string]attr.Value{}

	for name, t := range of.AttrTypes {
		switch t := t.(type) {
		case types.ListType:
			all[name] = types.ListNull(t.ElemType)
		case types.MapType:
			all[name] = types.MapNull(t.ElemType)
		default:
			switch t {
			case types.BoolType:
				all[name] = types.BoolNull()
			case types.Int64Type:
				all[name] = types.Int64Null()
			default:
				all[name] = types.StringNull()
			}
		}
	}

	maps.Copy(all, values)

	return types.ObjectValue(of.AttrTypes, all)
}

func durationOrNull(d, fallback time.Duration) duration {
	if d == fallback {
		return duration{timetypes.NewGoDurationNull()}
	}

	return duration{timetypes.NewGoDurationValue(d)}
}

func textMapOf(m map[string]string) types.Map {
	values := map[string]attr.Value{}
	for key, text := range m {
		values[key] = types.StringValue(text)
	}

	return types.MapValueMust(types.StringType, values)
}
