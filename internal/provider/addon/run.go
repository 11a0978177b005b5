package addon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// appliedKey is the key of addonApplied in private state.
const appliedKey = "applied"

// addonApplied is the result of the last apply, or of the import.
type addonApplied struct {
	// Revision of the release at that time.
	Revision int `json:"revision"`
	// Chart is its name and version.
	Chart string `json:"chart"`
	// Inputs is the mark of the inputs, empty after an import, and Digest that of the chart.
	Inputs string `json:"inputs,omitempty"`
	Digest string `json:"digest,omitempty"`
	// Claim distinguishes the resource from others that want the same release; it is empty when the resource did not
	// make it.
	Claim string `json:"claim,omitempty"`
	// Repair reports whether the last refresh found drift that equal inputs do not repair.
	Repair bool `json:"repair,omitempty"`
}

func appliedIn(ctx context.Context, private tf.PrivateState) (addonApplied, diag.Diagnostics) {
	var applied addonApplied

	diags := tf.ReadPrivate(ctx, private, appliedKey, &applied)

	return applied, diags
}

func (a addonApplied) store(ctx context.Context, private tf.PrivateStore) diag.Diagnostics {
	return tf.StorePrivate(ctx, private, appliedKey, a)
}

// addonRun is one apply of an addon.
type addonRun struct {
	ctx     context.Context //nolint:containedctx // it has the masks of the run
	cluster providerdata.ReleaseKeeper
	plan    addonModel
	Spec    release.Spec
	chart   *chart.Package
	Claim   string
	applied addonApplied
}

// begin fetches the chart and prepares everything for an apply. given is the configuration, which has the write-only
// values. It changes nothing.
func (r *addonResource) begin(ctx context.Context, plan, given addonModel) (*addonRun, diag.Diagnostics) {
	ctx = given.mask(ctx)

	spec, _, err := plan.Spec(ctx, given.ValuesWO)
	if err != nil {
		return nil, diag.Diagnostics{addonNotBegun(plan, err)}
	}

	ctx, cluster, err := plan.reach(maskTexts(ctx, spec.Secrets), r.ProviderData, pki.ChangingObjects)
	if err != nil {
		return nil, diag.Diagnostics{addonNotBegun(plan, err)}
	}

	source, _ := plan.source(given.Registry)

	chart, err := r.Addons.Charts.Fetch(ctx, source)
	if err != nil {
		return nil, diag.Diagnostics{chartTrouble(source, err).diagnostic(plan)}
	}

	return &addonRun{
		ctx: ctx, cluster: cluster, plan: plan, Spec: spec, chart: chart, Claim: cluster.Claim(spec.Name),
	}, nil
}

// mask returns a context whose log lines hide the credentials of the chart's server.
func (m addonModel) mask(ctx context.Context) context.Context {
	source, _ := m.source(m.Registry)

	return maskTexts(ctx, finding.NonEmpty(source.Password, source.ClientKey))
}

// maskTexts hides texts, except those too short to be distinctive.
func maskTexts[T ~[]string](ctx context.Context, texts T) context.Context {
	masks := slices.DeleteFunc(slices.Clone([]string(texts)), func(text string) bool { return len(text) < shortestMask })
	if len(masks) == 0 {
		return ctx
	}

	return tflog.MaskLogStrings(ctx, masks...)
}

// shortestMask is that of package values.
const shortestMask = 4

// install executes a create. stored reports whether there is anything to store.
func (r *addonRun) install(plan *addonModel) (stored bool, diags diag.Diagnostics) {
	outcome, err := r.cluster.Apply(r.ctx, r.Spec, r.chart, release.Intent{Create: true, Adopt: plan.Adopt.ValueBool()})

	last, exists := outcome.Now.Last()
	exists = exists && last.Status != release.Uninstalled

	if exists {
		r.take(plan, last)
	}

	switch refused := errors.Is(err, release.ErrExists) || errors.Is(err, release.ErrBusy) ||
		errors.Is(err, release.ErrUnreadable); {
	case err == nil && !exists:
		return false, diag.Diagnostics{tf.Bug(fmt.Sprintf("release %s was installed and has no history", r.Spec.Name))}
	case err == nil:
		return true, r.besides(outcome)
	case refused:
		return false, diag.Diagnostics{addonFailed(releaseFailed, "install", r, outcome, err, "")}
	case !exists:
		return false, diag.Diagnostics{addonFailed(releaseFailed, "install", r, outcome, err, whatIsLeft(outcome))}
	case r.reached(outcome):
		return true, diag.Diagnostics{addonFailed(releaseReached, "install", r, outcome, err, "")}
	case plan.OnIncomplete.ValueString() == tf.OnIncompleteError:
		return true, diag.Diagnostics{addonFailed(releaseTainted, "install", r, outcome, err, "")}
	default:
		return true, diag.Diagnostics{addonFailed(releaseIncomplete, "install", r, outcome, err, "")}
	}
}

// whatIsLeft says what a failed installation without a release left behind.
func whatIsLeft(outcome release.Outcome) string {
	switch {
	case outcome.Unseen:
		return "It is unknown what exists of the release. The next apply checks, and continues from there."
	case len(outcome.Left) > 0:
		return "Left of the release: " + strings.Join(outcome.Left, ", ") + ". The next apply installs it again and " +
			"uses these. If you do not apply again, remove them."
	default:
		return "Nothing is left of the release. The next apply installs it again."
	}
}

// upgrade executes an update.
func (r *addonRun) upgrade(plan *addonModel) diag.Diagnostics {
	repair := r.applied.Repair
	outcome, err := r.cluster.Apply(r.ctx, r.Spec, r.chart, release.Intent{Repair: repair})
	last, exists := outcome.Now.Last()

	switch {
	case err != nil && !repair && r.reached(outcome):
		r.take(plan, last)

		return diag.Diagnostics{addonFailed(releaseReached, "upgrade", r, outcome, err, "")}
	case err != nil:
		return diag.Diagnostics{addonFailed(releaseFailed, "upgrade", r, outcome, err,
			"State keeps the previous configuration.")}
	case !exists:
		return diag.Diagnostics{tf.Bug(fmt.Sprintf("release %s was upgraded and has no history", r.Spec.Name))}
	}

	r.take(plan, last)

	return r.besides(outcome)
}

// otherChart reports whether the chart differs from the plan.
func (r *addonRun) otherChart(plan addonModel) bool {
	return known(plan.ChartName) && plan.ChartName.ValueString() != r.chart.Name ||
		known(plan.ChartVersion) && plan.ChartVersion.ValueString() != r.chart.Version
}

// reached reports whether the release is as wanted, whatever failed.
func (r *addonRun) reached(outcome release.Outcome) bool {
	last, exists := outcome.Now.Last()

	return exists && last.Status == release.Deployed && last.Inputs == release.Inputs(r.Spec, r.chart.Digest)
}

// besides reports what was done besides the planned step, and notices for the user.
func (r *addonRun) besides(outcome release.Outcome) diag.Diagnostics {
	var diags diag.Diagnostics

	if steps := len(outcome.Done); steps > 1 {
		diags.Append(tf.Diagnostic(severalSteps.With(finding.Args{"release": r.Spec.Name,
			"steps": r.redacted(outcome.Done), "name": r.Spec.Name.Name, "namespace": r.Spec.Namespace})))
	}

	if len(outcome.Notices) > 0 {
		diags.Append(tf.Diagnostic(deployedWithNotices.With(
			finding.Args{"release": r.Spec.Name, "notices": r.redacted(outcome.Notices)})))
	}

	return diags
}

// redacted are lines without secrets.
func (r *addonRun) redacted(lines []string) []string {
	clean := make([]string, len(lines))
	for i, line := range lines {
		clean[i] = r.Spec.Secrets.Redact(line)
	}

	return clean
}

// take puts the result of an apply into the plan.
func (r *addonRun) take(plan *addonModel, last release.Revision) {
	plan.Fill(last)
	plan.ChartDigest, plan.Drift = tf.TextOrNull(r.chart.Digest), tf.TextList(nil)
	r.applied = addonApplied{
		Revision: last.Number, Chart: chartOf(last), Inputs: release.Inputs(r.Spec, r.chart.Digest), Digest: r.chart.Digest,
		Claim: r.applied.Claim,
	}
}

// chartOf names the chart of a revision.
func chartOf(r release.Revision) string { return r.ChartName + " " + r.ChartVersion }

// chartProblem is a problem with a chart, and its attribute.
type chartProblem struct {
	source chart.Source
	cause  error
	// definite is false for problems that may pass.
	definite bool
}

// chartTrouble separates problems that may pass from definite ones.
func chartTrouble(source chart.Source, err error) *chartProblem {
	passes := errors.Is(err, chart.ErrUnreachable) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)

	return &chartProblem{source: source, cause: err, definite: !passes}
}
