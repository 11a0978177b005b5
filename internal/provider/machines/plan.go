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

// A plan is computed from configuration and state alone. It asks no machine, because the second planning pass, at
// apply time, has to compute the same values. Facts from the network about an upgrade of Kubernetes are reported
// separately; see advise.

// forecast is the planned computed attributes.
type forecast struct {
	phase      types.String
	operations types.List
	impact     types.Object
	observed   observations
	record     types.String
	manifests  types.String
	restored   restored
	others     types.Map
}

// forecastCreate is the plan of a new resource. What a replacement does to the former machines is unknown: the CLIs
// plan it separately, and drop the messages of that plan.
func forecastCreate(p writtenSet, f machineset.Forecast, replaces bool) forecast {
	out := forecastUnknown(p, CommonModel{others: unmanaged.Unknown()}, f)
	if replaces {
		out.impact = types.ObjectUnknown(impactType())
	}

	return out
}

// forecastUnknown is a forecast while values are unknown.
func forecastUnknown(p writtenSet, state CommonModel, f machineset.Forecast) forecast {
	out := forecast{
		phase: state.Phase, operations: types.ListUnknown(types.StringType), impact: types.ObjectUnknown(impactType()),
		observed:  forecastObserved(state.observations, f.Machines),
		record:    types.StringUnknown(),
		manifests: manifestsAfter(p), restored: state.restored.after(p.Set),
		others: state.others, // the next refresh stores nodes that came and went
	}

	if f.UpgradesUnmanaged {
		out.others = unmanaged.Unknown()
	}

	if f.Resumes {
		out.phase = types.StringUnknown()
	}

	if f.Operations != nil {
		out.operations, out.impact = tf.TextList(f.Operations), ImpactOf(f.Impact)
	}

	return out
}

// forecastUpdate is the plan of an existing resource.
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

// untouched reports whether the computed attributes of a completely known plan leave machines unchanged.
func untouched(phase types.String, operations types.List, seen observations) bool {
	return !phase.IsUnknown() && !operations.IsUnknown() && len(operations.Elements()) == 0 &&
		tf.FullyKnown(seen.Observed) && tf.FullyKnown(seen.Talos) && tf.FullyKnown(seen.Kubernetes)
}

// edit is what a plan changes in a resource, with and without effect on machines.
type edit struct {
	// any is true when anything differs from state.
	any bool
	// known is true when the whole configuration is known.
	known bool
}

// editOf checks a plan before any value was filled in: the framework then has made every computed attribute unknown
// if, and only if, something differs.
func editOf(plan CommonModel, config tfsdk.Config) edit {
	return edit{any: plan.Operations.IsUnknown(), known: config.Raw.IsFullyKnown()}
}

// planUpdate forecasts an update, and refuses what is impossible. prior is the set of the state.
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

// rest completes a forecast of an update without steps. Held or refused steps still need a run, which reports the
// outcome.
func (f *forecast) rest(state CommonModel, e edit) {
	// No machine is touched: the observations stay unchanged.
	f.observed, f.record, f.manifests, f.others = state.observations, state.Record, state.manifests, state.others

	switch {
	case !e.any:
		f.operations, f.impact = state.Operations, state.Impact
	case !e.known:
		// An unknown value may turn out unchanged; then nothing changes at all, and the list of operations must not
		// either.
		f.operations, f.impact = types.ListUnknown(types.StringType), types.ObjectUnknown(impactType())
		f.record = types.StringUnknown()
	}
}

// manifestsAfter is the planned version of bootstrap manifests when machines are touched: unknown if there are
// control planes.
func manifestsAfter(p writtenSet) types.String {
	if p.MayHaveManifests() {
		return types.StringUnknown()
	}

	return types.StringNull()
}

// apply puts a forecast into a planned model.
func (m *CommonModel) apply(f forecast) {
	m.Phase, m.Operations, m.Impact, m.observations, m.Record = f.phase, f.operations, f.impact, f.observed, f.record
	m.manifests, m.restored, m.others = f.manifests, f.restored, f.others
}

// idle reports whether a plan leaves the machines unchanged.
func (m CommonModel) idle() bool { return untouched(m.Phase, m.Operations, m.observations) }

// forgetPlan removes the plan from a record of machines: the next plan has its own.
func (m *CommonModel) forgetPlan() {
	m.Operations, m.Impact = tf.TextList(nil), ImpactOf(machineset.Impact{})
}
