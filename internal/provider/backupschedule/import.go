package backupschedule

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// importExample is the import ID of a schedule.
const importExample = `{"secrets": "secrets.yaml", "control_plane": {"cp-1": "10.0.0.11"}, "name": "nightly"}`

// importRequest is an import ID: the secrets and the control planes, as for machines, and the schedule.
type importRequest struct {
	clusterimport.Source

	ControlPlane map[string]string `json:"control_plane"`
	Namespace    string            `json:"namespace"`
	Name         string            `json:"name"`
}

func readRequest(id string) (request importRequest, err error) {
	if err = clusterimport.DecodeImport(id, &request); err == nil {
		err = request.Check()
	}

	if err == nil && (request.Name == "" || len(request.ControlPlane) == 0) {
		err = errors.New("control_plane or name is missing")
	}

	return request, err
}

// ImportState takes over the objects of a schedule. It does not read their settings: the next apply makes them match
// the configuration, as does a create that finds objects of a former one.
func (r *scheduleResource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	request, err := readRequest(req.ID)
	if err != nil {
		resp.Diagnostics.Append(notImported("the import ID", err))

		return
	}

	file, err := request.Read(r.ProviderData)
	if err != nil {
		resp.Diagnostics.Append(notImported("the secrets of the cluster", err))

		return
	}

	ctx = tf.MaskSecrets(ctx, file.Text)

	_, cluster, diags, err := clusterimport.AccessSeen(ctx, r.ProviderData, request.ControlPlane, file)
	if err != nil {
		resp.Diagnostics.Append(notImported("the configurations of the control planes", err))
	}

	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}

	var model scheduleModel

	resp.State.Raw = tf.NullsOf(ctx, resp.State.Schema.Type())
	resp.Diagnostics.Append(resp.State.Get(ctx, &model)...)

	model.Cluster = cluster
	model.Name, model.Namespace = types.StringValue(request.Name), tf.TextOrNull(request.Namespace)

	if err := r.adopt(ctx, &model); err != nil {
		resp.Diagnostics.Append(notImported(fmt.Sprintf("schedule %q", request.Name), err))

		return
	}

	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

// notImported is the error about what could not be read.
func notImported(what string, err error) diag.Diagnostic {
	return tf.Diagnostic(scheduleNotImported.With(
		finding.Args{"what": what, "causes": strings.Split(err.Error(), "\n")}))
}

// adopt finds the CronJob of a schedule and imports its values into the model.
func (r *scheduleResource) adopt(ctx context.Context, m *scheduleModel) (err error) {
	var diags diag.Diagnostics

	r.inCluster(ctx, tf.OpRead, pki.ReadingSchedule, *m, &diags, func(ctx context.Context, s *Scheduler) {
		var cronJob map[string]any

		cronJob, err = s.own(ctx, s.Spec.CronJob())

		switch {
		case err != nil:
		case cronJob == nil:
			err = fmt.Errorf("there is no %s", objects.ReferenceTo(s.Spec.CronJob()))
		default:
			s.Spec.Schedule = schedule.ExpressionOf(cronJob)
			m.Schedule, m.Expired = types.StringValue(s.Spec.Schedule), tf.TextList(nil)
			m.fill(s.Spec, observed{})
		}
	})

	if diags.HasError() {
		return errors.New(diags.Errors()[0].Detail())
	}

	return err
}
