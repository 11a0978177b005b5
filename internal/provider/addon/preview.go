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
	"github.com/hashicorp/terraform-plugin-framework/path"

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
	// inTheWay is what blocks a create, nil for nothing.
	inTheWay diag.Diagnostic
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

	if p.inTheWay != nil {
		diags.Append(p.inTheWay)
	}

	if p.Cause != nil {
		diags.Append(p.warnUnreachable())
	}

	switch {
	case err != nil:
		diags.Append(p.refused(err))
	case p.inTheWay != nil: // the plan does not know whether that release is removed first
	case len(changes) > 0:
		diags.Append(warning("Addon changes objects", p.Spec.Name,
			countOf(changes)+finding.Prefixed(", because ", p.why)+"\n\n"+p.detail(changes)))
	case p.blind && p.Cause == nil && (p.state == nil || p.why != ""):
		diags.Append(p.warnUnknown(p.pending, "The apply renders the chart when its turn comes."))
	case p.why != "" && p.pending == "" && !p.drifted():
		diags.Append(warning("Addon is upgraded, and no object changes", p.Spec.Name, finding.Report{
			Cause: []string{p.why},
			Next:  "Nothing has to be done: the apply makes a revision of the release, and runs the hooks of the chart.",
		}.String()))
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
		p.pending = "the cluster could not be asked"
	}

	return p.changesOffline(ctx)
}

// changesOffline is what a create adds with the Kubernetes version of the plan. Only the cluster knows what an
// upgrade changes, and what renders with values of former revisions.
func (p *preview) changesOffline(ctx context.Context) ([]diff.Change, error) {
	version := p.version(ctx)

	if version == "" {
		p.pending += ", and no version of Kubernetes is known"
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
		p.pending = "the cluster is made or changed first"

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
		p.inTheWay = p.exists(d.Error())
	case release.Nothing:
		p.inTheWay = p.takenOver()
	default:
		return
	}

	// The create is refused, or comes when that is gone.
	p.have = release.Observation{}
}

// exists warns of a release that makes the apply refuse the create.
func (p *preview) exists(err error) diag.Diagnostic {
	return warning("Addon exists already", p.Spec.Name, finding.Report{
		Cause: CauseLines(p.Spec.Secrets.Redact(err.Error())),
		Next: "The apply fails unless the release goes before, as that of a resource that is replaced does. " +
			nextAfter(err),
	}.String())
}

// takenOver warns of a release that equals what the create would make.
func (p *preview) takenOver() diag.Diagnostic {
	return warning("Addon is taken over", p.Spec.Name, finding.Report{
		Cause: []string{"a release of this name exists that talosop made of the same inputs, as an apply does that is " +
			"killed before it stores its state"},
		Now: []string{"unless it goes before, as that of a resource that is replaced does, the apply takes it over as it " +
			"is and changes nothing in the cluster"},
		Next: "If another resource or another state manages it, remove this one: destroying one of them removes the " +
			"release for both.",
	}.String())
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

// warnUnreachable warns about a cluster that could not be asked.
func (p *preview) warnUnreachable() diag.Diagnostic {
	return warning("Cluster of an addon could not be asked", p.Spec.Name, finding.Report{
		Cause: CauseLines(p.Spec.Secrets.Redact(p.Cause.Error())),
		Now:   []string{"what the apply changes in it is not known"}, Next: p.wayOut(),
	}.String())
}

// wayOut says what to do about a cluster that could not be asked.
func (p *preview) wayOut() string {
	switch {
	case errors.Is(p.Cause, fs.ErrNotExist):
		return "Correct the path, or make sure that the file is there by the time of the apply: as an output of what makes " +
			"it, it is not read before."
	case errors.Is(p.Cause, errNoRoute):
		return "Correct what is configured in kubeconfig or cluster."
	case errors.Is(p.Cause, api.ErrNoAnswer), errors.Is(p.Cause, context.DeadlineExceeded):
		return "Check that the cluster runs and can be reached from here, and plan again. An apply asks it again."
	default:
		return "Check the credentials and what they may do, and plan again. An apply asks the cluster again."
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
	chart := fmt.Sprintf("chart %s %s", p.chart.Name, p.chart.Version)

	switch {
	case errors.Is(err, release.ErrMissing):
		return p.warnUnknown(text, "If another addon or resource of the same apply brings that (depends_on), this one is "+
			"rendered with it when its turn comes. Otherwise the apply fails for this reason.")
	case errors.Is(err, release.ErrChart):
		return tf.Invalid(path.Root("chart"), "chart",
			"found a file of "+chart+" that is not what Kubernetes can have: "+text,
			"allowed are charts that are whole", "choose another version of the chart, or correct the file in it")
	case errors.Is(err, release.ErrSchema):
		return tf.Invalid(path.Root("chart"), "chart", "found that the schema of "+chart+" is loaded from elsewhere: "+text,
			"allowed are schemas that are whole in themselves",
			"choose a version of the chart with such a one, or set skip_schema_validation = true to trust the values")
	case errors.Is(err, release.ErrValues):
		return tf.Invalid(p.plan.valuesPath(), "values", "found values that the schema of "+chart+" refuses: "+text,
			"allowed is what its values.schema.json describes",
			"correct the values that are named, or set skip_schema_validation = true to trust them")
	case errors.Is(err, release.ErrTemplate) && p.pending == "":
		return tf.Invalid(p.plan.valuesPath(), "values", "found that the templates of "+chart+" refuse these values: "+text,
			"allowed are values with which they render",
			"correct what is named, most often in values")
	case errors.Is(err, release.ErrType) && p.pending == "":
		return tf.Invalid(p.plan.valuesPath(), "values", "found values of which "+chart+" makes "+
			"what Kubernetes cannot read: "+text,
			"allowed are values of the types that its templates expect",
			"correct the value that gets there; quotes make texts of numbers in YAML")
	case errors.Is(err, release.ErrKubernetes):
		return tf.Invalid(path.Root("chart"), "chart", "found that "+chart+" is for another version of Kubernetes: "+text,
			"allowed is Kubernetes "+p.chart.KubeVersion, "choose another version of the chart, or upgrade the cluster first")
	case errors.Is(err, release.ErrPatch) && p.pending == "":
		return tf.Invalid(path.Root("patches"), "patches", "found patches that do not fit what "+chart+" renders: "+text,
			"allowed are patches of objects that there are", "correct the patch or its target")
	case errors.Is(err, release.ErrOwned):
		return tf.Warn(fmt.Sprintf("Objects of addon %s have another owner", p.Spec.Name), finding.Report{
			Cause: CauseLines(text), Next: "The apply fails as long as they do. " + nextAfter(err),
		}.String())
	case errors.Is(err, release.ErrWithheld):
		return p.warnUnknown("the templates look up a Secret, which no plan reads: "+text,
			"The apply reads it, and renders the chart with it.")
	default:
		return p.warnUnknown(p.Spec.Secrets.Redact(err.Error()),
			"The apply tries again, and fails when the cause is still there.")
	}
}

// warnUnknown warns that the changes of an apply are unknown.
func (p *preview) warnUnknown(cause, next string) diag.Diagnostic {
	return tf.Warn(fmt.Sprintf("What addon %s changes cannot be told", p.Spec.Name), finding.Report{
		Attempted: fmt.Sprintf("render chart %s %s for release %s, and compare it with what is there", p.chart.Name,
			p.chart.Version, p.Spec.Name),
		Cause: CauseLines(cause), Next: next,
	}.String())
}

// forecast is a chart that the apply will not get, or that could not be checked now.
func (p *chartProblem) forecast(m addonModel) diag.Diagnostic {
	at, next := p.place(m)
	what := finding.Report{
		Attempted: fmt.Sprintf("find chart %s of addon %s", m.chartText(), m.Release()), Cause: CauseLines(p.cause.Error()),
		Now: []string{"nothing was changed"}, Next: next,
	}

	if p.definite {
		return tf.UnableAt(at, "find", "chart", what)
	}

	what.Next = "The apply tries again. " + next

	return warning("Chart of an addon could not be looked at", m.Release(), what.String())
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

// detail lists the changes.
func (p *preview) detail(changes []diff.Change) string {
	text := &strings.Builder{}
	fmt.Fprintf(text, "With chart %s %s", p.chart.Name, p.chart.Version)

	if p.pending != "" {
		fmt.Fprintf(text, ", as far as it can be told without the cluster (%s)", p.pending)
	}

	text.WriteString(":")

	var lines []string
	for _, c := range changes {
		lines = append(lines, strings.Split(c.String(), "\n")...)
	}

	if more := len(lines) - mostChanges; more > 0 {
		lines = append(lines[:mostChanges], fmt.Sprintf("… and %d more lines", more))
	}

	for _, line := range lines {
		text.WriteString("\n  " + line)
	}

	return text.String()
}
