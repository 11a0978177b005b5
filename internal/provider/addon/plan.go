package addon

import (
	"context"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	frameworkpath "github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// ModifyPlan decides from configuration and state what an apply will do, so that both planning passes agree. What
// only the network knows is a warning, or an error when the apply cannot succeed. The one exception is a chart that
// changed under its version, when nothing else is to do.
func (r *addonResource) ModifyPlan(
	ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse,
) {
	var plan, state, given addonModel

	if req.Plan.Raw.IsNull() {
		return
	}

	if tf.OnlyRespelled(req) {
		req.Plan.Raw, resp.Plan.Raw = req.State.Raw, req.State.Raw
	}

	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &given)...)

	create := req.State.Raw.IsNull()
	if !create {
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	}

	applied, diags := appliedIn(ctx, req.Private)
	resp.Diagnostics.Append(diags...)

	if resp.Diagnostics.HasError() {
		return
	}

	if !create && plan.ofAnother(ctx, r.ProviderData, state) {
		resp.RequiresReplace.Append(plan.placePath())
	}

	// The response does not have the replacements of the schema yet.
	if create || len(resp.RequiresReplace) > 0 || plan.renamed(state) {
		// For a replacement the CLIs also request a plan of the create, and do not show its warnings.
		plan.addonSeenModel = unseenAddon()
		plan.forecast()
		resp.Diagnostics.Append(r.preview(ctx, plan, given, nil, "")...)
	} else {
		resp.Diagnostics.Append(r.planInPlace(ctx, &plan, given, state, applied)...)
	}

	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// planInPlace fills in what an update does.
func (r *addonResource) planInPlace(
	ctx context.Context, plan *addonModel, given, state addonModel, applied addonApplied,
) diag.Diagnostics {
	var diags diag.Diagnostics

	v := plan.planUpdate(ctx, state, applied)
	if v == (tf.Verdict{}) {
		v = r.vanished(ctx, *plan)
	}

	if v == (tf.Verdict{}) && plan.changesNothing(state) {
		v, diags = r.moved(ctx, *plan, given, state)
	}

	if v != (tf.Verdict{}) {
		plan.expectUpgrade(state)
		diags.Append(r.preview(ctx, *plan, given, &state, v.Takes)...)
	}

	return diags
}

// placePath is the attribute that selects the cluster.
func (m addonModel) placePath() frameworkpath.Path {
	if m.Cluster.IsNull() {
		return frameworkpath.Root("kubeconfig")
	}

	return frameworkpath.Root("cluster").AtName("secrets")
}

// ofAnother reports whether a plan is for another cluster than the state, as far as that is known.
func (m addonModel) ofAnother(ctx context.Context, data *providerdata.ProviderData, state addonModel) bool {
	if !m.placeKnown(ctx, data) {
		return false
	}

	wanted, err := m.route(ctx, data)
	was, unknown := state.route(ctx, data)

	return err == nil && unknown == nil && wanted.Another(was)
}

// renamed reports whether a plan is for another release than the state.
func (m addonModel) renamed(state addonModel) bool {
	return !m.Name.IsUnknown() && !m.Namespace.IsUnknown() && m.Release() != state.Release()
}

// placeKnown reports whether the route to the cluster is known.
func (m addonModel) placeKnown(ctx context.Context, data *providerdata.ProviderData) bool {
	if m.Cluster.IsUnknown() || m.Kubeconfig.IsUnknown() {
		return false
	}

	r := &tf.Reader{}
	for _, name := range []string{"path", "content", "context", "cluster"} {
		tf.Fields{Reader: r, Attributes: m.Kubeconfig}.Text(name)
	}

	if name, _ := m.Kubeconfig.Attributes()["cluster"].(types.String); !name.IsNull() {
		r.Text(data.KubeconfigOf(name))
	}

	if !m.Cluster.IsNull() {
		handle, _ := data.AccessFrom(ctx, m.Cluster)
		r.Text(handle.Secrets)
		r.Text(handle.Endpoint)
		r.Texts(handle.TalosEndpoints)
	}

	return !r.Unknown
}

// forecast fills in what is known before an install.
func (m *addonModel) forecast() {
	if !m.Name.IsUnknown() && !m.Namespace.IsUnknown() {
		m.ID = types.StringValue(m.Release().String())
	}
}

// planUpdate compares the configuration with the last apply, and fills in the changes of an update that leaves the
// release unchanged.
func (m *addonModel) planUpdate(ctx context.Context, state addonModel, applied addonApplied) tf.Verdict {
	v := m.upgrades(ctx, state, applied)
	m.keepSpelling(state)

	m.addonSeenModel = state.addonSeenModel
	m.Drift = tf.TextList(nil)

	return v
}

// upgrades reports whether an update upgrades the release, from configuration and state alone.
func (m addonModel) upgrades(ctx context.Context, state addonModel, applied addonApplied) tf.Verdict {
	nothing := types.ListNull(types.StringType)
	wanted, unknown, err := m.Spec(ctx, nothing)
	was, _, unread := state.Spec(ctx, nothing)
	drift, _ := tf.KnownStrings(state.Drift)

	switch {
	case len(drift) > 0:
		return tf.Verdict{Takes: "the release is not as it was made"}
	case state.Status.ValueString() != release.Deployed:
		return tf.Verdict{Takes: "the release is " + state.Status.ValueString()}
	case unknown, err != nil, unread != nil, m.ValuesWOVersion.IsUnknown():
		return tf.Verdict{Perhaps: true}
	case !m.ValuesWOVersion.Equal(state.ValuesWOVersion):
		return tf.Verdict{Takes: "values_wo_version changed"}
	case release.Inputs(wanted, "") != release.Inputs(was, ""):
		return tf.Verdict{Takes: whatChanged(wanted, was)}
	case m.sameSource(state), applied.Inputs == "" && m.mayBeImported(state):
		return tf.Verdict{}
	default:
		return tf.Verdict{Perhaps: true}
	}
}

// whatChanged names the differences of two releases whose marks differ.
func whatChanged(wanted, was release.Spec) string {
	var changed []string

	lines := values.Differences(was.Values, wanted.Values, slices.Concat(was.Secrets, wanted.Secrets))
	if more := len(lines) - mostValues; more > 0 {
		lines = append(lines[:mostValues], fmt.Sprintf("… and %d more", more))
	}

	if len(lines) > 0 {
		changed = append(changed, "values ("+strings.Join(lines, "; ")+")")
	}

	if !reflect.DeepEqual(wanted.Patches, was.Patches) {
		changed = append(changed, "patches")
	}

	// What the mark covers besides them.
	wanted.Values, wanted.Patches = was.Values, was.Patches
	if release.Inputs(wanted, "") != release.Inputs(was, "") {
		changed = append(changed, "options")
	}

	return finding.Describe(changed) + " changed"
}

// mostValues is how many changed values a plan names.
const mostValues = 5

// sameSource reports whether the source of the chart is unchanged.
func (m addonModel) sameSource(state addonModel) bool {
	return m.Chart.Equal(state.Chart) && m.Repository.Equal(state.Repository) && m.Version.Equal(state.Version) &&
		m.Devel.Equal(state.Devel) &&
		m.DependencyUpdate.Equal(state.DependencyUpdate)
}

// mayBeImported reports whether the chart can be the one of an imported release. Its source is unknown, so only name
// and version are compared.
func (m addonModel) mayBeImported(state addonModel) bool {
	if m.Chart.IsUnknown() || m.Version.IsUnknown() || m.Repository.IsUnknown() {
		return false
	}

	name := path.Base(strings.TrimRight(m.Chart.ValueString(), "/"))

	return name == state.ChartName.ValueString() &&
		strings.TrimPrefix(m.Version.ValueString(), "v") == strings.TrimPrefix(state.ChartVersion.ValueString(), "v")
}

// keepSpelling keeps the former spelling of values with the same meaning, so that comments and format plan no
// change. The CLIs allow a provider that.
func (m *addonModel) keepSpelling(state addonModel) {
	if m.Values.Equal(state.Values) || m.Values.IsNull() || state.Values.IsNull() {
		return
	}

	now, known := tf.KnownStrings(m.Values)
	before, _ := tf.KnownStrings(state.Values)

	if known && values.Same(now, before) {
		m.Values = state.Values
	}
}

// changesNothing reports whether a plan equals the state.
func (m addonModel) changesNothing(state addonModel) bool {
	for _, pair := range [][2]attr.Value{
		{m.Cluster, state.Cluster}, {m.Kubeconfig, state.Kubeconfig}, {m.CreateNamespace, state.CreateNamespace},
		{m.Namespace, state.Namespace},
		{m.Values, state.Values}, {m.Set, state.Set}, {m.SetSensitive, state.SetSensitive}, {m.Patches, state.Patches},
		{m.DriftDetection, state.DriftDetection}, {m.IgnoreDrift, state.IgnoreDrift}, {m.KeepHistory, state.KeepHistory},
		{m.Adopt, state.Adopt},
		{m.OnUnreachable, state.OnUnreachable}, {m.OnIncomplete, state.OnIncomplete}, {m.Timeouts, state.Timeouts},
		{m.Verify, state.Verify}, {m.Keyring, state.Keyring}, {m.Registry, state.Registry},
	} {
		if !pair[0].Equal(pair[1]) {
			return false
		}
	}

	return m.sameSource(state) && m.addonOptionsModel == state.addonOptionsModel
}

// expectUpgrade marks what an upgrade changes. A release that has to be reinstalled gets a new first deployment. Of
// the chart, the plan promises only what an exact version determines: a package may be published again between the
// passes of a plan.
func (m *addonModel) expectUpgrade(state addonModel) {
	m.addonSeenModel = unseenAddon()
	m.ID = state.ID

	if m.sameSource(state) && !m.Version.IsNull() && m.Version.Equal(state.ChartVersion) {
		m.ChartName, m.ChartVersion = state.ChartName, state.ChartVersion
	}
}

// vanished reports whether the cluster has nothing of the release. That is possible for a cluster that is still to
// be created or unknown. A refresh has checked it, so the cluster is asked only in the run of an apply, when it may
// have been recreated since. Without an answer, the release counts as present.
func (r *addonResource) vanished(ctx context.Context, plan addonModel) tf.Verdict {
	if r.ProviderData == nil {
		return tf.Verdict{}
	}

	if plan.clusterInMaking(ctx) || !plan.placeKnown(ctx, r.ProviderData) {
		return tf.Verdict{Perhaps: true}
	}

	ctx, cluster, err := plan.reach(ctx, r.ProviderData, pki.ReadingAddons)
	if err != nil || r.Ledger().WasRefreshed(cluster.Claim(plan.Release())) {
		return tf.Verdict{}
	}

	ctx, cancel := context.WithTimeout(ctx, r.KubernetesTimeout)
	defer cancel()

	if have, err := cluster.Observe(ctx, plan.Release()); err != nil || len(have.History) > 0 {
		return tf.Verdict{}
	}

	return tf.Verdict{Takes: "the cluster has nothing of the release"}
}

// moved reports whether the chart is another one by now, under its version or, with a range, under another version.
// A problem is a warning, because there is nothing to do.
func (r *addonResource) moved(ctx context.Context, plan, given, state addonModel) (tf.Verdict, diag.Diagnostics) {
	source, unknown := plan.source(given.Registry)
	if r.ProviderData == nil || unknown {
		return tf.Verdict{}, nil
	}

	ctx, cancel := context.WithTimeout(given.mask(ctx), r.Addons.PlanTimeout)
	defer cancel()

	pin, err := r.pin(ctx, source)
	if err != nil {
		return tf.Verdict{}, diag.Diagnostics{chartTrouble(source, err).warning(plan)}
	}

	before, digest := state.ChartVersion.ValueString(), state.ChartDigest.ValueString()

	switch {
	case pin.Version != before:
		return tf.Verdict{Takes: "the chart has another version"},
			diag.Diagnostics{tf.Diagnostic(newVersion.With(finding.Args{"release": plan.Release(),
				"chart": plan.chartText(), "found": pin.Version, "installed": before}))}
	case digest != "" && pin.Digest != digest:
		return tf.Verdict{Takes: "the chart has another content"},
			diag.Diagnostics{tf.Diagnostic(newContent.With(finding.Args{"release": plan.Release(),
				"chart": plan.chartText(), "version": pin.Version, "found": pin.Digest, "installed": digest}))}
	default:
		return tf.Verdict{}, nil
	}
}

// pin resolves a source. When only the package itself reveals its digest, it is fetched.
func (r *addonResource) pin(ctx context.Context, source chart.Source) (chart.Pin, error) {
	pin, err := r.Addons.Charts.Resolve(ctx, source)
	if err != nil || pin.Digest != "" {
		return pin, err
	}

	pkg, err := r.Addons.Charts.Fetch(ctx, source)
	if err != nil {
		return pin, err
	}

	return pkg.Pin, nil
}

// warning is a chart that could not be checked when there is nothing to do.
func (p *chartProblem) warning(m addonModel) diag.Diagnostic {
	_, next := p.place(m)

	return tf.Diagnostic(chartNotCompared.With(finding.Args{"release": m.Release(), "chart": m.chartText(),
		"causes": CauseLines(p.cause.Error()), "solution": next}))
}
