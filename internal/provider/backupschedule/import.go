package backupschedule

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// importOfSchedule is the import id of a schedule.
const importOfSchedule = `{"secrets": "secrets.yaml", "control_plane": {"cp-1": "10.0.0.11"}, "name": "nightly"}`

// scheduleImport is an import id: where the secrets and the control planes are, as for machines,
// and which schedule it is.
type scheduleImport struct {
	clusterimport.Source

	ControlPlane map[string]string `json:"control_plane"`
	Namespace    string            `json:"namespace"`
	Name         string            `json:"name"`
}

func readScheduleImport(id string) (scheduleImport, error) {
	var request scheduleImport

	if err := clusterimport.DecodeImport(id, &request); err != nil {
		return request, err
	}

	if err := request.Check(); err != nil {
		return request, err
	}

	if request.Name == "" || len(request.ControlPlane) == 0 {
		return request, errors.New("control_plane or name is missing")
	}

	return request, nil
}

// ImportState takes over the objects of a schedule. What they are made with is not read: the next apply makes them
// what the configuration says, as does a create that finds objects of a former one.
func (r *etcdBackupScheduleResource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	request, err := readScheduleImport(req.ID)
	if err != nil {
		resp.Diagnostics.Append(notImported("read the import id", err))

		return
	}

	file, err := request.Read(r.ProviderData)
	if err != nil {
		resp.Diagnostics.Append(notImported("read the secrets of the cluster", err))

		return
	}

	ctx = tf.MaskSecrets(ctx, file.Text)

	planes, diags := clusterimport.Recognise(ctx, r.ProviderData, request.ControlPlane, file, step.ControlPlane)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	settings, _, err := clusterimport.SettingsOfAll(planes, file)
	if err != nil {
		resp.Diagnostics.Append(notImported("read the configurations of the control planes", err))

		return
	}

	model := importedSchedule(ctx, request)

	model.Cluster, diags = clusterimport.AccessSeen(ctx, settings, file, planes)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	if err := r.readSchedule(ctx, &model); err != nil {
		resp.Diagnostics.Append(notImported(fmt.Sprintf("read schedule %q", request.Name), err))

		return
	}

	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func notImported(attempted string, err error) diag.Diagnostic {
	return tf.Unable("import", scheduleObject, finding.Report{
		Attempted: attempted, Cause: strings.Split(err.Error(), "\n"), Now: []string{"nothing was imported"},
		Next: "Give a JSON object such as " + importOfSchedule + ", with namespace where it is not " +
			DefaultNamespace + ".",
	})
}

// importedSchedule is a model that says nothing but what the id does.
func importedSchedule(ctx context.Context, request scheduleImport) etcdBackupScheduleModel {
	null := func(name string) types.Object { return types.ObjectNull(scheduleType(ctx, name).AttrTypes) }

	tolerations, _ := etcdBackupScheduleAttributes(ctx)["tolerations"].GetType().(types.ListType)

	return etcdBackupScheduleModel{
		Name: types.StringValue(request.Name), Namespace: tf.TextOrNull(request.Namespace), S3: null("s3"),
		Encryption: null("encryption"), Retain: null("retain"),
		Image: null("image"), History: null("history"), Resources: null("resources"),
		NodeSelector:     types.MapNull(types.StringType),
		Tolerations:      types.ListNull(tolerations.ElemType),
		StartingDeadline: tf.Duration{GoDuration: timetypes.NewGoDurationNull()},
		RunTimeout:       tf.Duration{GoDuration: timetypes.NewGoDurationNull()},
		Timeouts:         tf.NoTimeouts(ctx),
	}
}

// readSchedule finds the CronJob of a schedule and puts what is imported of it into the model.
func (r *etcdBackupScheduleResource) readSchedule(ctx context.Context, m *etcdBackupScheduleModel) error {
	s, closing, diags := r.scheduler(ctx, pki.ReadingSchedule, *m)
	if diags.HasError() {
		return errors.New(diags.Errors()[0].Detail())
	}

	defer closing()

	ref := objects.ReferenceTo(s.Spec.CronJob())
	cronJob, err := s.API.GetObject(ctx, ref)

	switch {
	case err != nil:
		return err
	case cronJob == nil:
		return fmt.Errorf("there is no %s", ref)
	case !schedule.Owned(cronJob, s.Spec.Name):
		return fmt.Errorf("there is a %s %w", ref, errForeign)
	}

	s.Spec.Schedule = schedule.ExpressionOf(cronJob)
	m.Schedule, m.Kept = types.StringValue(s.Spec.Schedule), types.Int64Null()
	m.Fill(s.Spec, scheduleSeen{})
	m.Expired = tf.TextList(nil)

	return nil
}
