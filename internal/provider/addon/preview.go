package addon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// mostChanges is how many changes of an addon's objects a plan lists.
const mostChanges = 100

// preview is a forecast of an apply.
type preview struct {
	plan  addonModel
	state *addonModel // nil for a create
	// why the release is upgraded, empty for a create and when that is unknown.
	why   string
	Spec  release.Spec
	chart *chart.Package
	// have is the release as observed, empty when there is none.
	have release.Observation
	// pending is why the cluster was not asked, empty when it was; Cause is why it could not be.
	pending string
	Cause   error
	// blind reports whether the plan does not know what the chart renders.
	blind bool
	// blocker is what blocks a create, nil for nothing.
	blocker diag.Diagnostic
}

// preview forecasts the changes of an apply, and what prevents its success. Only definite problems are errors: the
// chart has no such version, or its templates or schema refuse the values. why is the reason for the upgrade, as far
// as that is known.
func (r *addonResource) preview(
	ctx context.Context, plan, given addonModel, state *addonModel, why string,
) diag.Diagnostics {
	source, unknown := plan.source(given.Registry)
	if r.ProviderData == nil || unknown {
		return nil
	}

	ctx, cancel := context.WithTimeout(given.mask(ctx), r.Addons.PlanTimeout)
	defer cancel()

	spec, unknown, err := plan.Spec(ctx, given.ValuesWO)
	if err != nil {
		return nil // the validation reports its mistakes, as far as it knows the values
	}

	if unknown {
		if _, err := r.Addons.Charts.Resolve(ctx, source); err != nil {
			return diag.Diagnostics{chartTrouble(source, err).forecast(plan)}
		}

		return nil
	}

	p := &preview{plan: plan, state: state, Spec: spec, why: why}

	if p.chart, err = r.Addons.Charts.Fetch(ctx, source); err != nil {
		return diag.Diagnostics{chartTrouble(source, err).forecast(plan)}
	}

	return p.diagnose(maskTexts(ctx, spec.Secrets), r.ProviderData)
}

// diagnose renders the chart and compares the result with the release.
func (p *preview) diagnose(ctx context.Context, from *providerdata.ProviderData) diag.Diagnostics {
	var diags diag.Diagnostics

	changes, err := p.changes(ctx, from)

	if p.blocker != nil {
		diags.Append(p.blocker)
	}

	if p.Cause != nil {
		diags.Append(p.warnUnreachable())
	}

	switch {
	case err != nil:
		diags.Append(p.refused(err))
	case p.blocker != nil: // the plan does not know whether that release is removed first
	case len(changes) > 0:
		diags.Append(tf.Diagnostic(objectsChange.With(finding.Args{"release": p.Spec.Name, "counts": countOf(changes),
			"reason": p.why, "chart": p.chartName(), "pending": p.pending, "changes": listed(changes)})))
	case p.blind && p.Cause == nil && (p.state == nil || p.why != ""):
		diags.Append(p.unknown(renderedLater, p.pending))
	case p.why != "" && p.pending == "" && !p.drifted():
		diags.Append(tf.Diagnostic(upgradeWithoutChange.With(finding.Args{"release": p.Spec.Name, "reason": p.why})))
	}

	return diags
}

// drifted reports whether the refresh found drift that the apply repairs and that no comparison with records shows.
func (p *preview) drifted() bool {
	return p.state == nil || len(p.state.Drift.Elements()) > 0
}

// changes renders on the cluster when it answers, and without one otherwise.
func (p *preview) changes(ctx context.Context, from *providerdata.ProviderData) ([]diff.Change, error) {
	cluster := p.cluster(ctx, from)
	if cluster != nil {
		p.observe(ctx, cluster)
	}

	if cluster != nil && p.Cause == nil {
		changes, err := p.ask(ctx, cluster)
		if err == nil || ctx.Err() == nil && !errors.Is(err, api.ErrNoAnswer) {
			return changes, err
		}

		p.Cause = err
	}

	if p.Cause != nil {
		p.pending = "the cluster did not answer"
	}

	return p.changesOffline(ctx)
}

// changesOffline is what a create adds with the Kubernetes version of the plan. Only the cluster knows what an
// upgrade changes, and what renders with values of former revisions.
func (p *preview) changesOffline(ctx context.Context) ([]diff.Change, error) {
	version := p.version(ctx)

	if version == "" {
		p.pending += ", and the version of Kubernetes is unknown"
	}

	p.blind = p.state != nil || version == "" || p.Spec.Options.Reuse != release.ReuseNothing
	if p.blind {
		return nil, release.Check(p.Spec, p.chart, version)
	}

	rendering, err := release.RenderOffline(ctx, p.Spec, p.chart, version)

	return rendering.Additions(), err
}

// cluster is nil when it cannot be asked.
func (p *preview) cluster(ctx context.Context, from *providerdata.ProviderData) providerdata.ReleaseKeeper {
	if !p.plan.placeKnown(ctx, from) || p.plan.clusterInMaking(ctx) {
		p.pending = "the cluster is created or changed first"

		return nil
	}

	_, cluster, err := p.plan.reach(ctx, from, pki.ReadingAddons)
	p.Cause = err

	return cluster.ReleaseKeeper
}

// clusterInMaking reports whether the phase of the cluster is unknown.
func (m addonModel) clusterInMaking(ctx context.Context) bool {
	if m.Cluster.IsNull() {
		return false
	}

	handle, _ := clusterhandle.AccessFrom(ctx, m.Cluster)

	return handle.Phase.IsUnknown()
}

// observe reads the release, and what blocks a create.
func (p *preview) observe(ctx context.Context, cluster providerdata.ReleaseKeeper) {
	have, err := cluster.Observe(ctx, p.Spec.Name)
	if err != nil {
		p.Cause = err

		return
	}

	p.have = have
	if p.state != nil || p.plan.Adopt.ValueBool() {
		return
	}

	want := release.Wanted{
		Name: p.Spec.Name, Inputs: release.Inputs(p.Spec, p.chart.Digest), Intent: release.Intent{Create: true}, Held: true,
		Timeout: p.Spec.Options.Timeout,
	}

	switch d := release.Decide(want, have, time.Now()); d.Step {
	case release.Refuse:
		p.blocker = p.exists(d.Error())
	case release.Nothing:
		p.blocker = p.takenOver()
	default:
		return
	}

	// The create is refused, or comes when that is gone.
	p.have = release.Observation{}
}

// exists warns of a release that makes the apply refuse the create.
func (p *preview) exists(err error) diag.Diagnostic {
	return tf.Diagnostic(releaseExists.With(finding.Args{"release": p.Spec.Name,
		"causes": CauseLines(p.Spec.Secrets.Redact(err.Error())), "solution": nextAfter(err)}))
}

// takenOver warns of a release that equals what the create would make.
func (p *preview) takenOver() diag.Diagnostic {
	return tf.Diagnostic(releaseTakenOver.With(finding.Args{"release": p.Spec.Name}))
}

// ask renders on the cluster and compares with its objects.
func (p *preview) ask(ctx context.Context, cluster providerdata.ReleaseKeeper) ([]diff.Change, error) {
	rendering, err := cluster.Render(ctx, p.Spec, p.chart, p.have)
	if err != nil {
		return nil, err
	}

	former := p.plan
	if p.state != nil {
		former = *p.state
	}

	hidden, err := former.hiddenOf(ctx, p.have, p.state == nil)
	if err != nil {
		return nil, nil //nolint:nilerr // the validation reports it
	}

	shown := p.Spec
	shown.Secrets = slices.Concat(p.Spec.Secrets, hidden)

	return cluster.Changes(ctx, shown, rendering, p.have)
}

// warnUnreachable warns about a cluster that did not answer.
func (p *preview) warnUnreachable() diag.Diagnostic {
	return tf.Diagnostic(clusterNotAsked.With(finding.Args{"release": p.Spec.Name,
		"causes": CauseLines(p.Spec.Secrets.Redact(p.Cause.Error())), "solution": p.solution()}))
}

// solution says what to do about a cluster that could not be asked.
func (p *preview) solution() string {
	switch {
	case errors.Is(p.Cause, fs.ErrNotExist):
		return "Correct the path, or make sure that the file exists at the time of the apply. If the path is an output of " +
			"the resource that creates the file, the plan does not read it."
	case errors.Is(p.Cause, errNoRoute):
		return "Correct `kubeconfig` or `cluster`."
	case errors.Is(p.Cause, api.ErrNoAnswer), errors.Is(p.Cause, context.DeadlineExceeded):
		return "Make sure that the cluster runs and is reachable from here, then plan again. An apply asks it again."
	default:
		return "Check the credentials and their permissions, then plan again. An apply asks the cluster again."
	}
}

// version is the Kubernetes version in the handle, empty for none.
func (p *preview) version(ctx context.Context) string {
	if p.plan.Cluster.IsNull() {
		return ""
	}

	handle, _ := clusterhandle.AccessFrom(ctx, p.plan.Cluster)

	return handle.KubernetesVersion.ValueString()
}

// detailsOf are the details of an error without its kind, which the message already names.
func detailsOf(err error) string {
	text := err.Error()
	for _, kind := range []error{release.ErrChart, release.ErrValues, release.ErrTemplate, release.ErrKubernetes,
		release.ErrPatch, release.ErrOwned, release.ErrSchema, release.ErrWithheld, release.ErrType} {
		text = strings.TrimPrefix(text, kind.Error()+": ")
	}

	return text
}

// refused is the result of a chart that cannot be rendered: an error when the apply is certain to fail. Templates
// may need facts of a cluster that are unknown without it.
func (p *preview) refused(err error) diag.Diagnostic {
	text := p.Spec.Secrets.Redact(detailsOf(err))
	args := finding.Args{"chart": p.chartName(), "causes": CauseLines(text)}
	values := tf.PathOf(p.plan.valuesPath())

	switch {
	case errors.Is(err, release.ErrMissing):
		return p.unknown(needsOthers, text)
	case errors.Is(err, release.ErrChart):
		return tf.Diagnostic(chartFile.At(finding.Root("chart"), args))
	case errors.Is(err, release.ErrSchema):
		return tf.Diagnostic(chartSchema.At(finding.Root("chart"), args))
	case errors.Is(err, release.ErrValues):
		return tf.Diagnostic(valuesSchema.At(values, args))
	case errors.Is(err, release.ErrTemplate) && p.pending == "":
		return tf.Diagnostic(valuesTemplates.At(values, args))
	case errors.Is(err, release.ErrType) && p.pending == "":
		return tf.Diagnostic(valuesType.At(values, args))
	case errors.Is(err, release.ErrKubernetes):
		args["allowed"] = p.chart.KubeVersion

		return tf.Diagnostic(otherKubernetes.At(finding.Root("chart"), args))
	case errors.Is(err, release.ErrPatch) && p.pending == "":
		return tf.Diagnostic(patchesUnfit.At(finding.Root("patches"), args))
	case errors.Is(err, release.ErrOwned):
		return tf.Diagnostic(objectsOwned.With(
			finding.Args{"release": p.Spec.Name, "causes": CauseLines(text), "solution": nextAfter(err)}))
	case errors.Is(err, release.ErrWithheld):
		return p.unknown(readsSecret, text)
	default:
		return p.unknown(notRendered, p.Spec.Secrets.Redact(err.Error()))
	}
}

// unknown warns that the changes of an apply are unknown.
func (p *preview) unknown(message finding.Message, cause string) diag.Diagnostic {
	return tf.Diagnostic(message.With(
		finding.Args{"release": p.Spec.Name, "chart": p.chartName(), "causes": CauseLines(cause)}))
}

// chartName is the name and version of the chart.
func (p *preview) chartName() string { return p.chart.Name + " " + p.chart.Version }

// forecast is a chart that the apply will not get, or that could not be checked now.
func (p *chartProblem) forecast(m addonModel) diag.Diagnostic {
	if p.definite {
		return p.diagnostic(m)
	}

	_, next := p.place(m)

	return tf.Diagnostic(chartNotChecked.With(finding.Args{"release": m.Release(), "chart": m.chartText(),
		"causes": CauseLines(p.cause.Error()), "solution": next}))
}

// countOf is text such as "2 objects added, 1 changed, 1 removed".
func countOf(changes []diff.Change) string {
	counts := map[diff.Verb]int{}
	for _, c := range changes {
		counts[c.Verb]++
	}

	var parts []string

	for _, kind := range []struct {
		verb diff.Verb
		Text string
	}{{diff.Add, "added"}, {diff.Alter, "changed"}, {diff.Remove, "removed"}} {
		n := counts[kind.verb]
		if n == 0 {
			continue
		}

		noun := ""
		if len(parts) == 0 {
			noun = finding.Verb(make([]string, n), " object", " objects")
		}

		parts = append(parts, fmt.Sprintf("%d%s %s", n, noun, kind.Text))
	}

	return strings.Join(parts, ", ")
}

// listed are the changes as lines.
func listed(changes []diff.Change) string {
	var lines []string
	for _, c := range changes {
		lines = append(lines, strings.Split(c.String(), "\n")...)
	}

	if more := len(lines) - mostChanges; more > 0 {
		lines = append(lines[:mostChanges], fmt.Sprintf("… and %d more lines", more))
	}

	return "  " + strings.Join(lines, "\n  ")
}
