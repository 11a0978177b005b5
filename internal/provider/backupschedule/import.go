package backupschedule

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// importExample is the import id of a schedule.
const importExample = `{"secrets": "secrets.yaml", "control_plane": {"cp-1": "10.0.0.11"}, "name": "nightly"}`

// importRequest is an import id: where the secrets and the control planes are, as for machines, and which schedule.
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

// ImportState takes over the objects of a schedule. What they are made with is not read: the next apply makes them
// what the configuration says, as does a create that finds objects of a former one.
func (r *scheduleResource) ImportState(
	ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse,
) {
	failed := func(attempted string, err error) {
		resp.Diagnostics.Append(tf.Unable("import", scheduleObject, finding.Report{
			Attempted: attempted, Cause: strings.Split(err.Error(), "\n"), Now: []string{"nothing was imported"},
			Next: "Give a JSON object such as " + importExample + ", with namespace where it is not " + DefaultNamespace + ".",
		}))
	}

	request, err := readRequest(req.ID)
	if err != nil {
		failed("read the import id", err)

		return
	}

	file, err := request.Read(r.ProviderData)
	if err != nil {
		failed("read the secrets of the cluster", err)

		return
	}

	ctx = tf.MaskSecrets(ctx, file.Text)

	_, cluster, diags, err := clusterimport.AccessSeen(ctx, r.ProviderData, request.ControlPlane, file)
	if err != nil {
		failed("read the configurations of the control planes", err)
	}

	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}

	var model scheduleModel

	resp.State.Raw = tf.NullsOf(ctx, resp.State.Schema.Type())
	resp.Diagnostics.Append(resp.State.Get(ctx, &model)...)

	model.Cluster = cluster
	model.Name, model.Namespace = types.StringValue(request.Name), tf.TextOrNull(request.Namespace)

	r.inCluster(ctx, tf.OpRead, pki.ReadingSchedule, model, &diags, func(ctx context.Context, s *Scheduler) {
		err = s.adopt(ctx, &model)
	})

	if diags.HasError() {
		err = errors.New(diags.Errors()[0].Detail())
	}

	if err != nil {
		failed(fmt.Sprintf("read schedule %q", request.Name), err)

		return
	}

	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

// adopt finds the CronJob of a schedule and puts what is imported of it into the model.
func (s *Scheduler) adopt(ctx context.Context, m *scheduleModel) error {
	cronJob, err := s.own(ctx, s.Spec.CronJob())

	switch {
	case err != nil:
		return err
	case cronJob == nil:
		return fmt.Errorf("there is no %s", objects.ReferenceTo(s.Spec.CronJob()))
	}

	s.Spec.Schedule = schedule.ExpressionOf(cronJob)
	m.Schedule, m.Expired = types.StringValue(s.Spec.Schedule), tf.TextList(nil)
	m.fill(s.Spec, observed{})

	return nil
}
