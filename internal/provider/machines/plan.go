package machines

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/unmanaged"
)

// A plan is worked out from configuration and state alone. No machine is asked:
// the second planning pass, at apply time, has to come to the same values. What only the
// network knows, where Kubernetes is to be upgraded, is said beside it; see advise.

// forecast is what a plan says about the computed attributes.
type forecast struct {
	phase      types.String
	operations types.List
	impact     types.Object
	observed   types.Map
	record     types.String
	manifests  types.String
	restored   restored
	others     types.Map
}

// forecastCreate is what a plan says of a resource that is to be made. What a replacement does to the machines of the
// one before is not known: the CLIs plan it apart, and drop what that plan says.
func forecastCreate(p writtenSet, f machineset.Forecast, replaces bool) forecast {
	out := forecastUnknown(p, CommonModel{others: unmanaged.Unknown()}, f)
	if replaces {
		out.impact = types.ObjectUnknown(impactType())
	}

	return out
}

// forecastUnknown is a forecast as long as not all is known.
func forecastUnknown(p writtenSet, state CommonModel, f machineset.Forecast) forecast {
	out := forecast{
		phase: state.Phase, operations: types.ListUnknown(types.StringType), impact: types.ObjectUnknown(impactType()),
		observed:  forecastObserved(state.Observed, f.Machines),
		record:    types.StringUnknown(),
		manifests: manifestsAfter(p), restored: state.restored.after(p.Set),
		others: state.others, // the next refresh stores what came and went meanwhile
	}

	if f.UpgradesUnmanaged {
		out.others = unmanaged.Unknown()
	}

	if f.Resumes {
		out.phase = types.StringUnknown()
	}

	if f.Operations != nil {
		out.operations, out.impact = tf.TextList(f.Operations), impactOf(f.Impact)
	}

	return out
}

// forecastUpdate is what a plan says of a resource that is there.
func forecastUpdate(p writtenSet, state CommonModel, e edit, f machineset.Forecast) forecast {
	out := forecastUnknown(p, state, f)

	switch {
	case f.Idle:
		out.rest(state, e)
	case f.LeavesKubernetes && !f.Resumes && state.manifests.ValueString() == p.Settings.KubernetesVersion:
		out.manifests = state.manifests
	}

	return out
}

// untouched is whether the computed attributes of a plan that is wholly known leave machines alone.
func untouched(phase types.String, operations types.List, observed types.Map) bool {
	return !phase.IsUnknown() && !operations.IsUnknown() && len(operations.Elements()) == 0 && tf.FullyKnown(observed)
}

// edit is what a plan changes in a resource, whether it concerns machines or not.
type edit struct {
	// any is true when anything differs from state.
	any bool
	// known is true when the whole configuration is known.
	known bool
}

// editOf looks at a plan before anything of it was filled in: the framework then has
// made every computed attribute unknown if, and only if, something differs.
func editOf(plan CommonModel, config tfsdk.Config) edit {
	return edit{any: plan.Operations.IsUnknown(), known: config.Raw.IsFullyKnown()}
}

// planUpdate forecasts an update, and refuses what cannot be done. prior is the set of
// the state.
func planUpdate(
	ctx context.Context, p, prior writtenSet, plan, state CommonModel, policy cluster.Policy,
) (machineset.Forecast, finding.List) {
	record, diags := state.Recorded(ctx, prior.Set)
	f, more := p.ForecastUpdate(prior.Set, record, policy)
	diags.Append(more...)

	if plan.OnDestroy.ValueString() != onDestroyPreserve && !plan.DeletionProtection.IsUnknown() {
		diags.Append(p.WarnOfUnprotected(prior.Set, record, policy)...)
	}

	return f, diags
}

// rest is a forecast of an update that has nothing to do. What is held or refused is no
// reason to do nothing: the run says what came of it.
func (f *forecast) rest(state CommonModel, e edit) {
	// No machine is touched: what was observed stays what it is.
	f.observed, f.record, f.manifests, f.others = state.Observed, state.Record, state.manifests, state.others

	switch {
	case !e.any:
		f.operations, f.impact = state.Operations, state.Impact
	case !e.known:
		// A value that is unknown may turn out to be the old one; then nothing
		// changes at all, and the list of operations must not either.
		f.operations, f.impact = types.ListUnknown(types.StringType), types.ObjectUnknown(impactType())
		f.record = types.StringUnknown()
	}
}

// manifestsAfter is what a plan that touches machines says of bootstrap manifests: nothing
// yet, where there are control planes to have any.
func manifestsAfter(p writtenSet) types.String {
	if p.MayHaveManifests() {
		return types.StringUnknown()
	}

	return types.StringNull()
}

// apply puts a forecast into a planned model.
func (m *CommonModel) apply(f forecast) {
	m.Phase, m.Operations, m.Impact, m.Observed, m.Record = f.phase, f.operations, f.impact, f.observed, f.record
	m.manifests, m.restored, m.others = f.manifests, f.restored, f.others
}

// idle reports whether a plan leaves the machines alone.
func (m CommonModel) idle() bool { return untouched(m.Phase, m.Operations, m.Observed) }

// forgetPlan takes what a plan said out of a record of machines: the next plan says what it does itself.
func (m *CommonModel) forgetPlan() {
	m.Operations, m.Impact = tf.TextList(nil), impactOf(machineset.Impact{})
}
