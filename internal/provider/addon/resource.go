package addon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

var (
	_ resource.Resource                   = (*addonResource)(nil)
	_ resource.ResourceWithConfigure      = (*addonResource)(nil)
	_ resource.ResourceWithValidateConfig = (*addonResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*addonResource)(nil)
	_ resource.ResourceWithImportState    = (*addonResource)(nil)
)

const addonObject = "addon"

// How long a cluster is asked before it is forgotten when it does not answer, and the pause between attempts.
const (
	addonPause = time.Second
)

// NewResource is the constructor of talosop_addon.
func NewResource() resource.Resource { return &addonResource{} }

// addonResource is one Helm release on one cluster.
type addonResource struct {
	providerdata.ConfiguredResource
}

func (r *addonResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_addon"
}

func (r *addonResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A Helm release on a cluster, such as its network, storage or metrics. An apply runs Helm " +
			"after drift, a failed apply, or a change of chart, values, `patches` or rendering options; a plan warning " +
			"lists changed objects. See the [guide to addons](../guides/addons.md).",
		Attributes: addonAttributes(ctx),
	}
}

func (r *addonResource) ValidateConfig(
	ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse,
) {
	var config addonModel

	if tf.ReadForValidation(ctx, req.Config, &config, &resp.Diagnostics) {
		resp.Diagnostics.Append(config.validate(ctx)...)
	}
}

func (r *addonResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan, given addonModel

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &given)...)

	ctx, cancel := tf.DeadlineOf(ctx, plan.Timeouts, tf.OpCreate, &resp.Diagnostics)
	defer cancel()

	if resp.Diagnostics.HasError() {
		return
	}

	run, diags := r.begin(ctx, plan, given)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	claim, taken := r.Ledger().ClaimRelease(run.Claim)
	if taken {
		resp.Diagnostics.Append(addonTwice(plan))

		return
	}

	run.applied.Claim = claim
	stored, diags := run.install(&plan)
	resp.Diagnostics.Append(diags...)

	if !stored {
		r.Ledger().UnclaimRelease(run.Claim)

		return
	}

	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(run.applied.store(ctx, resp.Private)...)
}

// Read observes the release. Private state has the result of the last apply, so that repeated refreshes do not
// forget what drifted.
func (r *addonResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state addonModel

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	applied, diags := appliedIn(ctx, req.Private)
	resp.Diagnostics.Append(diags...)

	ctx, cancel := tf.DeadlineOf(ctx, state.Timeouts, tf.OpRead, &resp.Diagnostics)
	defer cancel()

	if resp.Diagnostics.HasError() {
		return
	}

	gone, diags := r.look(ctx, &state, &applied)
	resp.Diagnostics.Append(diags...)

	if gone {
		resp.State.RemoveResource(ctx)

		return
	}

	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	resp.Diagnostics.Append(applied.store(ctx, resp.Private)...)
}

func (r *addonResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, given addonModel

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &given)...)

	applied, diags := appliedIn(ctx, req.Private)
	resp.Diagnostics.Append(diags...)

	ctx, cancel := tf.DeadlineOf(ctx, plan.Timeouts, tf.OpUpdate, &resp.Diagnostics)
	defer cancel()

	if resp.Diagnostics.HasError() {
		return
	}

	// All is known: no input of the release changed.
	if !plan.Revision.IsUnknown() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)

		return
	}

	run, diags := r.begin(ctx, plan, given)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	run.applied = applied

	if run.otherChart(plan) {
		resp.Diagnostics.Append(addonReplanned(plan, run.chart))

		return
	}

	resp.Diagnostics.Append(run.upgrade(&plan)...)

	// The state keeps the former configuration until Helm has applied the new one.
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
		resp.Diagnostics.Append(run.applied.store(ctx, resp.Private)...)
	}
}

func (r *addonResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state addonModel

	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)

	applied, diags := appliedIn(ctx, req.Private)
	resp.Diagnostics.Append(diags...)

	ctx, cancel := tf.DeadlineOf(ctx, state.Timeouts, tf.OpDelete, &resp.Diagnostics)
	defer cancel()

	if resp.Diagnostics.HasError() {
		return
	}

	to, err := state.route(ctx, r.ProviderData)
	if err == nil && r.Ledger().OfOther(to.Claim(state.Release()), applied.Claim) {
		resp.Diagnostics.Append(addonKept(state))

		return
	}

	if err == nil {
		ctx = to.mask(ctx)
		err = r.uninstall(ctx, state, to)
	}

	forget := state.OnUnreachable.ValueString() == onUnreachableForget

	if forget && errors.Is(err, api.ErrNoAnswer) {
		err = r.retryUninstall(ctx, state, to)
	}

	switch {
	case err == nil:
		r.Ledger().UnclaimRelease(to.Claim(state.Release()))
	case forget && (errors.Is(err, api.ErrNoAnswer) || errors.Is(err, errNoRoute)):
		resp.Diagnostics.Append(addonForgotten(state, err))
	default:
		resp.Diagnostics.Append(addonNotRemoved(ctx, state, err))
	}
}

// retryUninstall repeats an uninstall that got no answer for some time: a short outage must not make the resource
// forget a release.
func (r *addonResource) retryUninstall(ctx context.Context, state addonModel, to Route) error {
	ctx, cancel := context.WithTimeoutCause(ctx, r.Addons.UnreachableTimeout,
		fmt.Errorf("not within %s", r.Addons.UnreachableTimeout))
	defer cancel()

	err := wait.Until(ctx, cmp.Or(r.Interval, addonPause), func(ctx context.Context) error {
		err := r.uninstall(ctx, state, to)
		if errors.Is(err, api.ErrNoAnswer) || ctx.Err() != nil {
			return err
		}

		return wait.Permanent(err)
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", api.ErrNoAnswer, err)
	}

	return err
}

// uninstall removes the release. It is idempotent.
func (r *addonResource) uninstall(ctx context.Context, state addonModel, to Route) error {
	cluster, err := addonsOn(ctx, r.ProviderData, pki.ChangingObjects, to)
	if err != nil {
		return err
	}

	spec, _, err := state.Spec(ctx, types.ListNull(types.StringType))
	if err != nil {
		return err
	}

	return cluster.Remove(ctx, state.Release(), release.RemoveOptions{
		KeepHistory: state.KeepHistory.ValueBool(), DisableHooks: spec.Options.DisableHooks, Wait: spec.Options.Wait,
		Timeout: spec.Options.Timeout,
		Secrets: spec.Secrets,
	})
}
