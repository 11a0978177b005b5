package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/talosop/terraform-provider-talosop/internal/addon"
	"github.com/talosop/terraform-provider-talosop/internal/addon/manifest"
	"github.com/talosop/terraform-provider-talosop/internal/addon/values"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
)

// mostChanges is how many lines a plan says of what changes in the objects of an addon.
const mostChanges = 100

// preview is a look at what an apply will do.
type preview struct {
	plan, given addonModel
	state       *addonModel // nil for a create
	spec        addon.Spec
	chart       *addon.Package
	// have is the release as it is, empty for one that is not there or goes first.
	have addon.Observation
	// pending says why the cluster was not asked, empty when it was.
	pending string
}

// preview says what an apply will change, and what keeps it from succeeding. Only what is
// definite is an error: the chart has no such version, its templates or its schema refuse the
// values.
func (r *addonResource) preview(ctx context.Context, plan, given addonModel, state *addonModel) diag.Diagnostics {
	source, unknown := plan.source(given.Registry)
	if r.machinery == nil || unknown {
		return nil
	}

	ctx, cancel := context.WithTimeout(given.mask(ctx), r.addons.glance)
	defer cancel()

	spec, unknown, err := plan.spec(ctx, given.ValuesWO)
	if err != nil {
		return nil // its mistakes are told by the validation, as far as it knows the values
	}

	if unknown {
		if _, err := r.addons.charts.Resolve(ctx, source); err != nil {
			return diag.Diagnostics{chartTrouble(source, err).forecast(plan)}
		}

		return nil
	}

	p := &preview{plan: plan, given: given, state: state, spec: spec}

	if p.chart, err = r.addons.charts.Fetch(ctx, source); err != nil {
		return diag.Diagnostics{chartTrouble(source, err).forecast(plan)}
	}

	return p.diagnose(maskTexts(ctx, spec.Secrets), r.addons)
}

// diagnose renders the chart and compares the outcome with the release.
func (p *preview) diagnose(ctx context.Context, from *addons) diag.Diagnostics {
	rendering, stranger, err := p.render(ctx, from)
	if err != nil {
		return diag.Diagnostics{p.refused(err)}
	}

	if stranger {
		return diag.Diagnostics{unsettled(fmt.Sprintf("Addon %s exists already", p.spec.Name), report{
			Attempted: "look at release " + p.spec.Name.String(), Cause: []string{"somebody else has made a release of this name, and adopt is not true"},
			Next: "The apply fails unless the release goes before, in the same apply for instance. " + nextAfter(addon.ErrExists),
		}.String())}
	}

	if p.state != nil && p.pending != "" {
		return nil // what there is to compare with nobody knows
	}

	before, _ := p.have.Deployed()

	secrets, err := p.secrets(ctx, before)
	if err != nil {
		return nil
	}

	changes := manifest.Compare(before.Objects, rendering.Objects, secrets.Redact)
	if len(changes) == 0 {
		return nil
	}

	return diag.Diagnostics{announced(fmt.Sprintf("Addon %s: %s", p.spec.Name, countOf(changes)), p.detail(changes))}
}

// secrets are the texts that are secret in what was and what will be.
func (p *preview) secrets(ctx context.Context, before addon.Revision) (values.Secrets, error) {
	former := p.plan
	if p.state != nil {
		former = *p.state
	}

	hidden, err := former.hidden(ctx, before.Values)

	return append(hidden, p.spec.Secrets...), err
}

// render renders on the cluster where it answers, and without one otherwise. stranger is whether
// the apply finds a release that is not its own.
func (p *preview) render(ctx context.Context, from *addons) (rendering addon.Rendering, stranger bool, err error) {
	cluster, err := p.cluster(ctx, from)
	if err != nil {
		return rendering, false, err
	}

	if cluster != nil {
		rendering, stranger, err = p.ask(ctx, cluster)
		if !errors.Is(err, kubernetes.ErrNoAnswer) && !errors.Is(err, context.DeadlineExceeded) {
			return rendering, stranger, err
		}

		p.pending = "the cluster did not answer"
	}

	rendering, err = addon.RenderOffline(ctx, p.spec, p.chart, p.version(ctx))

	return rendering, false, err
}

// cluster is nil where it cannot be asked yet.
func (p *preview) cluster(ctx context.Context, from *addons) (releaseKeeper, error) {
	if !p.plan.placeKnown(ctx) || p.plan.clusterInMaking(ctx) {
		p.pending = "the cluster is made or changed first"

		return nil, nil //nolint:nilnil // see above
	}

	to, err := p.plan.way(ctx)
	if err != nil {
		p.pending = err.Error()

		return nil, nil //nolint:nilerr,nilnil // a kubeconfig may be written by then
	}

	return from.cluster(to.mask(ctx), to)
}

// clusterInMaking is whether the phase of the cluster is not known yet.
func (m addonModel) clusterInMaking(ctx context.Context) bool {
	if m.Cluster.IsNull() {
		return false
	}

	handle, _ := handleFrom(ctx, m.Cluster)

	return handle.Phase.IsUnknown()
}

func (p *preview) ask(ctx context.Context, cluster releaseKeeper) (rendering addon.Rendering, stranger bool, err error) {
	have, err := cluster.Observe(ctx, p.spec.Name)
	if err != nil {
		return rendering, false, err
	}

	if p.state == nil && !p.plan.Adopt.ValueBool() {
		// A release of one's own is there when a replacement is planned, and goes before the create.
		if last, exists := have.Last(); exists && last.Inputs == "" && last.Status != addon.Uninstalled {
			return rendering, true, nil
		}

		have = addon.Observation{}
	}

	p.have = have
	rendering, err = cluster.Render(ctx, p.spec, p.chart, have)

	return rendering, false, err
}

// version of Kubernetes that the handle tells, empty for none.
func (p *preview) version(ctx context.Context) string {
	if p.plan.Cluster.IsNull() {
		return ""
	}

	handle, _ := handleFrom(ctx, p.plan.Cluster)

	return handle.KubernetesVersion.ValueString()
}

// refused is the outcome of a chart that cannot be rendered: an error where that is sure to keep the
// apply from succeeding.
func (p *preview) refused(err error) diag.Diagnostic {
	text := p.spec.Secrets.Redact(err.Error())
	chart := fmt.Sprintf("chart %s %s", p.chart.Name, p.chart.Version)

	switch {
	case errors.Is(err, addon.ErrValues):
		return invalid(path.Root("values"), "values", "found values that the schema of "+chart+" refuses: "+text,
			"allowed is what its values.schema.json describes", "correct the values that are named, or set skip_schema_validation = true to trust them")
	case errors.Is(err, addon.ErrTemplate):
		return invalid(path.Root("chart"), "chart", "found that the templates of "+chart+" refuse these values: "+text, "allowed are values with which they render",
			"correct what is named, most often in values")
	case errors.Is(err, addon.ErrKubernetes):
		return invalid(path.Root("chart"), "chart", "found that "+chart+" is for another version of Kubernetes: "+text,
			"allowed is Kubernetes "+p.chart.KubeVersion, "choose another version of the chart, or upgrade the cluster first")
	case errors.Is(err, addon.ErrPatch):
		return invalid(path.Root("patches"), "patches", "found patches that do not fit what "+chart+" renders: "+text,
			"allowed are patches of objects that there are", "correct the patch or its target")
	default:
		return unsettled(fmt.Sprintf("What addon %s changes cannot be told", p.spec.Name), report{
			Attempted: fmt.Sprintf("render %s for release %s, and compare it with what is there", chart, p.spec.Name), Cause: strings.Split(text, "\n"),
			Now: []string{"nothing was changed"}, Next: "The apply tries again, and fails when the cause is still there.",
		}.String())
	}
}

// forecast is a chart that the apply will not get, or that could not be asked for now.
func (p *chartProblem) forecast(m addonModel) diag.Diagnostic {
	at, next := p.place(m)
	what := report{
		Attempted: fmt.Sprintf("find chart %s of addon %s", m.chartText(), m.release()), Cause: strings.Split(p.cause.Error(), "\n"),
		Now: []string{"nothing was changed"}, Next: next,
	}

	if p.definite {
		return unableAt(at, "find", "chart", what)
	}

	what.Next = "The apply tries again. " + next

	return unsettled(fmt.Sprintf("The chart of addon %s could not be looked at", m.release()), what.String())
}

// countOf is such as "2 objects added, 1 changed, 1 removed".
func countOf(changes []manifest.Change) string {
	counts := map[manifest.Verb]int{}
	for _, c := range changes {
		counts[c.Verb]++
	}

	var parts []string

	for _, kind := range []struct {
		verb manifest.Verb
		text string
	}{{manifest.Add, "added"}, {manifest.Alter, "changed"}, {manifest.Remove, "removed"}} {
		n := counts[kind.verb]
		if n == 0 {
			continue
		}

		noun := ""
		if len(parts) == 0 {
			noun = verb(make([]string, n), " object", " objects")
		}

		parts = append(parts, fmt.Sprintf("%d%s %s", n, noun, kind.text))
	}

	return strings.Join(parts, ", ")
}

// detail lists the changes.
func (p *preview) detail(changes []manifest.Change) string {
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
