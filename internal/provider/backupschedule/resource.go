package backupschedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup/schedule"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

var (
	_ resource.Resource                   = (*scheduleResource)(nil)
	_ resource.ResourceWithConfigure      = (*scheduleResource)(nil)
	_ resource.ResourceWithValidateConfig = (*scheduleResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*scheduleResource)(nil)
	_ resource.ResourceWithImportState    = (*scheduleResource)(nil)
)

// How long Talos may take, see Scheduler.
const (
	talosTimeout     = time.Minute
	talosGracePeriod = 15 * time.Second
	schedulePause    = time.Second
)

// NewResource is talosop_etcd_backup_schedule.
func NewResource() resource.Resource { return &scheduleResource{} }

// scheduleResource keeps a CronJob in a cluster that takes snapshots of its etcd.
type scheduleResource struct {
	providerdata.ConfiguredResource
}

func (r *scheduleResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_etcd_backup_schedule"
}

func (r *scheduleResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Scheduled etcd snapshots, without Terraform runs: a CronJob of " +
			"[talos-backup](https://github.com/siderolabs/talos-backup) sends them to a bucket, with a Talos ServiceAccount " +
			"(role `os:etcd:backup`) and a Secret. Talos must allow its API for pods of the namespace, with a patch of " +
			"every control plane ([guide to backups](../guides/etcd-backups.md)). The next apply repairs changes by other " +
			"clients (`drift`); a destroy removes exactly what the resource created and keeps the snapshots.",
		Attributes: scheduleAttributes(ctx),
	}
}

// ModifyPlan decides by configuration and state alone.
func (r *scheduleResource) ModifyPlan(
	ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) {
	if req.Plan.Raw.IsNull() {
		return
	}

	var plan, state scheduleModel

	if tf.OnlyRespelled(req) {
		req.Plan.Raw, resp.Plan.Raw = req.State.Raw, req.State.Raw
	}

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)

	create := req.State.Raw.IsNull()
	if !create {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	}

	if resp.Diagnostics.HasError() {
		return
	}

	wanted, unknown, invalid := plan.spec(ctx, r.ProviderData)
	if was, _, _ := state.spec(ctx, r.ProviderData); wanted.Mark != "" && was.Mark != "" && wanted.Mark != was.Mark {
		resp.RequiresReplace.Append(path.Root("cluster").AtName("secrets"))
	}

	drift, _ := tf.KnownStrings(state.Drift)
	expired, _ := tf.KnownStrings(state.Expired)

	// The framework marked computed values as unknown, because the configuration differs.
	if req.Plan.Raw.Equal(req.State.Raw) && len(drift)+len(expired) == 0 {
		return
	}

	if len(expired) > 0 && !plan.Retain.IsNull() {
		resp.Diagnostics.Append(tf.Diagnostic(snapshotsDeleted.With(finding.Args{
			"name": state.Name.ValueString(), "count": len(expired), "snapshots": expired,
			"stored": state.Kept.ValueInt64(), "place": plan.place()})))
	}

	plan.seenModel = unseen()
	if !unknown && !invalid.HasError() {
		plan.forecast(wanted)
	}

	if !create && plan.Retain.IsNull() {
		plan.Kept = types.Int64Null()
	}

	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

func (r *scheduleResource) Create(
	ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse,
) {
	var plan scheduleModel

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	r.apply(ctx, tf.OpCreate, &plan, nil, req.Config, &resp.State, &resp.Diagnostics)
}

func (r *scheduleResource) Update(
	ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse,
) {
	var plan, state scheduleModel

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	r.apply(ctx, tf.OpUpdate, &plan, &state, req.Config, &resp.State, &resp.Diagnostics)
}

// apply applies a plan to the cluster and the bucket, and stores the result. state is nil for a create.
func (r *scheduleResource) apply(
	ctx context.Context, op tf.Operation, plan, state *scheduleModel, config tfsdk.Config, result *tfsdk.State,
	diags *diag.Diagnostics,
) {
	var bucket types.Object

	// Only the configuration has the key that the pods use.
	diags.Append(config.GetAttribute(ctx, path.Root("s3"), &bucket)...)
	key := store.CredentialsIn((&tf.Reader{}).Fields(bucket))
	ctx = store.MaskCredentials(ctx, key)

	r.inCluster(ctx, op, pki.ChangingObjects, *plan, diags, func(ctx context.Context, s *Scheduler) {
		begun, err := s.Establish(ctx, schedule.Credentials{AccessKeyID: key.AccessKeyID,
			SecretAccessKey: key.SecretAccessKey, SessionToken: key.SessionToken}, state == nil,
			plan.CreateNamespace.IsNull() || plan.CreateNamespace.ValueBool())
		failed := scheduleFailed

		switch {
		case err == nil:
			diags.Append(r.use(ctx, s, plan, state)...)
			diags.Append(result.Set(ctx, plan)...)

			return
		case errors.Is(err, errForeign):
			failed = scheduleForeign
		case state == nil && begun:
			failed = scheduleIncomplete

			// The objects are known by their names, and are removed when the resource is replaced.
			plan.fill(s.Spec, observed{})
			plan.RunNow, plan.Kept, plan.Expired = types.StringNull(), types.Int64Null(), tf.TextList(nil)
			diags.Append(result.Set(ctx, plan)...)
		}

		diags.Append(ScheduleFailed(ctx, string(op), s, err, failed))
	})
}

// use does once what a plan requests besides the objects, and puts the result into the plan.
func (r *scheduleResource) use(ctx context.Context, s *Scheduler, plan, state *scheduleModel) diag.Diagnostics {
	var diags diag.Diagnostics

	ran, shown := types.StringNull(), []string(nil)
	if state != nil {
		ran = state.RunNow
		shown, _ = tf.KnownStrings(state.Expired)
	}

	if wish := plan.RunNow; !wish.IsNull() && !wish.Equal(ran) {
		if err := s.runNow(ctx, wish.ValueString()); err != nil {
			diags.Append(tf.Diagnostic(scheduleNotRun.With(
				finding.Args{"name": s.Spec.Name, "causes": strings.Split(err.Error(), "\n")})))

			plan.RunNow = ran
		}
	}

	diags.Append(r.thinOut(ctx, s.Spec, plan, func(key string) bool {
		// When retain is unchanged, the plan has shown the deletions.
		return state == nil || !plan.Retain.Equal(state.Retain) || slices.Contains(shown, key)
	})...)

	seen, err := s.observe(ctx)
	if err != nil {
		seen = observed{}

		diags.Append(tf.Diagnostic(scheduleNotSeen.With(
			finding.Args{"name": s.Spec.Name, "cause": err.Error()})))
	}

	plan.fill(s.Spec, seen)
	plan.Drift, plan.Expired = tf.TextList(nil), tf.TextList(nil)

	return diags
}

func (r *scheduleResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state scheduleModel

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	if state.S3.IsNull() {
		return // it was imported, and the next apply makes it match the configuration
	}

	if handle, _ := clusterhandle.AccessFrom(ctx, state.Cluster); r.StateLacksSecrets(ctx, state.Cluster) {
		resp.Diagnostics.Append(tf.Diagnostics(finding.List{providerdata.NotReadWithoutSecrets(handle.Name)})...)

		return
	}

	r.inCluster(ctx, tf.OpRead, pki.ReadingSchedule, state, &resp.Diagnostics,
		func(ctx context.Context, s *Scheduler) {
			seen, err := s.observe(ctx)

			switch {
			case err != nil:
				resp.Diagnostics.Append(tf.Diagnostic(scheduleNotRead.With(finding.Args{
					"name": s.Spec.Name, "schedule": s, "causes": strings.Split(err.Error(), "\n")})))
			case seen.gone:
				resp.State.RemoveResource(ctx)
			default:
				state.fill(s.Spec, seen)
				resp.Diagnostics.Append(s.warn(seen)...)
				resp.Diagnostics.Append(r.thinOut(ctx, s.Spec, &state, func(string) bool { return false })...)
				resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
			}
		})
}

// warn reports observations, and what an apply does about them.
func (s *Scheduler) warn(seen observed) diag.Diagnostics {
	var diags diag.Diagnostics

	if seen.refused != "" {
		diags.Append(tf.Diagnostic(scheduleDeniedLater.With(finding.Args{"name": s.Spec.Name, "schedule": s,
			"cause": seen.refused, "patch": TalosAccessPatch(s.Spec.Namespace)})))
	}

	if len(seen.drift) > 0 {
		diags.Append(tf.Diagnostic(scheduleDrifted.With(
			finding.Args{"name": s.Spec.Name, "schedule": s, "drift": seen.drift})))
	}

	return diags
}

// TalosAccessPatch is what the configuration of control planes needs (Talos 1.13,
// v1alpha1.KubernetesTalosAPIAccessConfig).
func TalosAccessPatch(namespace string) string {
	return "machine:\n  features:\n    kubernetesTalosAPIAccess:\n      enabled: true\n      allowedRoles:\n        - " +
		schedule.Role + "\n      allowedKubernetesNamespaces:\n        - " + namespace + "\n"
}

// String names the schedule.
func (s *Scheduler) String() string {
	return fmt.Sprintf("schedule %s/%s of cluster %q", s.Spec.Namespace, s.Spec.Name, s.Spec.Cluster)
}

func (r *scheduleResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state scheduleModel

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	r.inCluster(ctx, tf.OpDelete, pki.ChangingObjects, state, &resp.Diagnostics,
		func(ctx context.Context, s *Scheduler) {
			stays, err := s.Remove(ctx)

			switch {
			case err != nil:
				resp.Diagnostics.Append(ScheduleFailed(ctx, "delete", s, err, scheduleNotDeleted))
			case len(stays) > 0:
				resp.Diagnostics.Append(tf.Diagnostic(namespaceKept.With(
					finding.Args{"namespace": s.Spec.Namespace, "left": stays})))
			}
		})
}

// inCluster works in the cluster of a model that is fully known, within the timeout of an operation.
func (r *scheduleResource) inCluster(
	ctx context.Context, op tf.Operation, access pki.Access, m scheduleModel, diags *diag.Diagnostics,
	work func(context.Context, *Scheduler),
) {
	if diags.HasError() {
		return
	}

	ctx, cancel := tf.DeadlineOf(ctx, m.Timeouts, op, diags)
	defer cancel()

	spec, _, invalid := m.spec(ctx, r.ProviderData)
	diags.Append(invalid...)

	handle, bundle, invalid := r.ClusterOf(ctx, m.Cluster)
	diags.Append(invalid...)

	p := providerdata.OfHandle(handle, "cluster", diags)

	if diags.HasError() {
		return
	}

	c, err := r.ClientsOf(ctx, access, p, machineset.PriorState{}, bundle,
		api.Options{Progress: func(message string) { tf.LogInfo(ctx, message) }})
	if err != nil {
		diags.Append(tf.Diagnostic(clusterUnreachable.With(
			finding.Args{"cluster": handle.Name.ValueString(), "cause": err.Error()})))

		return
	}

	defer c.Close()

	work(ctx, &Scheduler{API: c.API, Spec: spec, Timeout: talosTimeout, gracePeriod: talosGracePeriod,
		Pause: cmp.Or(r.Interval, schedulePause)})
}

// ScheduleFailed is the error of failed work: the message, unless Talos is the cause.
func ScheduleFailed(
	ctx context.Context, verb string, s *Scheduler, err error, message finding.Message,
) diag.Diagnostic {
	if errors.Is(err, ErrTalosAccess) {
		message = scheduleDenied
	}

	return tf.Diagnostic(message.With(finding.Args{"verb": verb, "name": s.Spec.Name, "schedule": s,
		"causes": append(strings.Split(err.Error(), "\n"), tf.RanOutLines(ctx)...),
		"patch":  TalosAccessPatch(s.Spec.Namespace)}))
}
