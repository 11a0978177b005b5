package addon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// addonAgain is the advice after every failed apply.
const addonAgain = "Applying again is safe: talosop reads the records of Helm first, and continues from there."

// chartText names the chart for people, without anything secret.
func (m addonModel) chartText() string {
	text := m.Chart.ValueString()

	if repository := m.Repository.ValueString(); repository != "" {
		text = strings.TrimRight(repository, "/") + "/" + text
	}

	if version := m.Version.ValueString(); version != "" {
		text += " " + version
	}

	return text
}

// addonNotBegun is an apply that could not start.
func addonNotBegun(m addonModel, err error) diag.Diagnostic {
	return tf.Diagnostic(notBegun.With(finding.Args{"release": m.Release(), "causes": CauseLines(err.Error())}))
}

// addonTwice is a release that two resources own.
func addonTwice(m addonModel) diag.Diagnostic {
	return tf.Diagnostic(ownedTwice.At(finding.Root("name"), finding.Args{"release": m.Release()}))
}

// addonReplanned is a chart that differs from the plan.
func addonReplanned(m addonModel, chart *chart.Package) diag.Diagnostic {
	return tf.Diagnostic(otherChart.At(finding.Root("version"), finding.Args{"release": m.Release(),
		"now": chart.Name + " " + chart.Version, "planned": m.ChartName.ValueString() + " " + m.ChartVersion.ValueString()}))
}

// addonFailed reports work that failed. more is added to what to do next.
func addonFailed(
	message finding.Message, verb string, r *addonRun, outcome release.Outcome, err error, more string,
) diag.Diagnostic {
	causes, next := causesAndNext(r.ctx, err)

	var at finding.Path
	if found, known := attributeOfFailure(r.plan, err); known && message.Severity == finding.Error {
		at = tf.PathOf(found)
	}

	return tf.Diagnostic(message.At(at, finding.Args{"verb": verb, "release": r.Spec.Name,
		"chart": r.chart.Name + " " + r.chart.Version, "causes": r.redacted(causes), "state": r.redacted(stateLines(outcome)),
		"solution": next, "more": more}))
}

// causesAndNext are the causes of an error of the engine, and what to do next.
func causesAndNext(ctx context.Context, err error) (causes []string, next string) {
	causes, next = CauseLines(addonCause(err)), nextAfter(err)

	var failed *release.FailedError
	if errors.As(err, &failed) {
		causes = CauseLines(addonCause(failed.Cause))
		for _, trouble := range failed.Diagnosis {
			causes = append(causes, strings.ReplaceAll(trouble, "\n", "\n    "))
		}

		next = cmp.Or(failed.Next, next)
	}

	return append(causes, tf.RanOutLines(ctx)...), next
}

// stateLines are what was done, and the state of the release.
func stateLines(outcome release.Outcome) []string {
	var lines []string
	for _, done := range outcome.Done {
		lines = append(lines, "done: "+done)
	}

	lines = append(lines, outcome.Notices...)

	if last, exists := outcome.Now.Last(); exists {
		lines = append(lines, fmt.Sprintf("revision %d is %s", last.Number, last.Status))
	}

	return lines
}

// listHead is how libraries of Helm start a list of errors (hashicorp/go-multierror, format.go).
var listHead = regexp.MustCompile(`:?\s*\b\d+ errors? occurred:$`)

// CauseLines splits the text of an error into lines for a list, each a cause or its context.
func CauseLines(text string) []string {
	var lines []string

	for line := range strings.Lines(text) {
		line = listHead.ReplaceAllString(strings.TrimSpace(line), "")
		line = strings.TrimSpace(strings.TrimPrefix(line, "* "))

		if line != "" {
			lines = append(lines, line)
		}
	}

	return lines
}

// addonCause explains a deadline.
func addonCause(err error) string {
	switch {
	case errors.Is(err, api.ErrNoAnswer):
		return err.Error()
	case errors.Is(err, context.Canceled):
		// The engine says "interrupted", or what it was doing.
		if more, is := strings.CutPrefix(err.Error(), "interrupted"); is {
			return "the run was interrupted" + more
		}

		return "the run was interrupted\n" + err.Error()
	default:
		return err.Error()
	}
}

// nextAfter says what to do about an error of the engine.
func nextAfter(err error) string {
	switch {
	case errors.Is(err, release.ErrExists):
		return "Import it with `terraform import <address> <namespace>/<name>` or an import block, so that the next plan " +
			"shows the changes. Or set `adopt = true` to take it over and upgrade it at once, or choose another name."
	case errors.Is(err, release.ErrBusy):
		return "Wait until the other operation on the release is done, then apply again."
	case errors.Is(err, release.ErrUnreadable):
		return "Check the Secrets of the release (`kubectl get secret -l owner=helm`) with the version of helm that " +
			"created them."
	case errors.Is(err, release.ErrOwned):
		return "Set `take_ownership = true` to make them part of this release, or remove them."
	case errors.Is(err, api.ErrNoAnswer):
		return "Apply again when the cluster answers. " + addonAgain
	default:
		return "Correct the cause, then apply again. " + addonAgain
	}
}

// attributeOfFailure is the attribute of a mistake that the engine found.
func attributeOfFailure(m addonModel, err error) (at path.Path, known bool) {
	switch {
	case errors.Is(err, release.ErrValues), errors.Is(err, release.ErrTemplate), errors.Is(err, release.ErrType):
		return m.valuesPath(), true
	case errors.Is(err, release.ErrPatch):
		return path.Root("patches"), true
	case errors.Is(err, release.ErrKubernetes), errors.Is(err, release.ErrChart):
		return path.Root("chart"), true
	case errors.Is(err, release.ErrOwned):
		return path.Root("take_ownership"), true
	case errors.Is(err, release.ErrExists):
		return path.Root("name"), true
	default:
		return path.Path{}, false
	}
}

// valuesPath is where the configuration gives values, if in one place only; and the chart if there are none.
func (m addonModel) valuesPath() path.Path {
	switch {
	case !m.Values.IsNull():
		return path.Root("values")
	case !m.Set.IsNull():
		return path.Root("set")
	case !m.SetSensitive.IsNull():
		return path.Root("set_sensitive")
	case !m.ValuesWOVersion.IsNull():
		return path.Root("values_wo")
	default:
		return path.Root("chart")
	}
}

// addonKept is a destroy of a release that its replacement has already taken over.
func addonKept(m addonModel) diag.Diagnostic {
	return tf.Diagnostic(releaseKept.With(finding.Args{"release": m.Release()}))
}

// addonForgotten is a destroy without the cluster.
func addonForgotten(m addonModel, err error) diag.Diagnostic {
	return tf.Diagnostic(releaseForgotten.With(finding.Args{"release": m.Release(), "causes": CauseLines(err.Error()),
		"name": m.Name.ValueString(), "namespace": m.Release().Namespace}))
}

// addonNotRemoved is a destroy that did not finish.
func addonNotRemoved(ctx context.Context, m addonModel, err error) diag.Diagnostic {
	causes, next := CauseLines(addonCause(err)), "Correct the cause, then apply again. Applying again is safe."

	var failed *release.FailedError
	if errors.As(err, &failed) {
		causes = append(CauseLines(addonCause(failed.Cause)), failed.Diagnosis...)
		next = cmp.Or(failed.Next, next)
	}

	return tf.Diagnostic(releaseNotRemoved.With(finding.Args{"release": m.Release(),
		"causes": append(causes, tf.RanOutLines(ctx)...), "solution": next,
		"silent": errors.Is(err, api.ErrNoAnswer) || errors.Is(err, errNoRoute)}))
}

// diagnostic is a chart that an apply cannot get.
func (p *chartProblem) diagnostic(m addonModel) diag.Diagnostic {
	at, next := p.place(m)

	return tf.Diagnostic(chartNotFound.At(tf.PathOf(at), finding.Args{"release": m.Release(), "chart": m.chartText(),
		"causes": CauseLines(p.cause.Error()), "solution": next}))
}

// place is the attribute of a problem, and what to do.
func (p *chartProblem) place(m addonModel) (at path.Path, next string) {
	repository := path.Root("repository")
	if m.Repository.IsNull() {
		repository = path.Root("chart")
	}

	switch {
	case errors.Is(p.cause, chart.ErrNoVersion):
		at, next = path.Root("version"), "Choose an existing version. `devel = true` also allows prereleases."
	case errors.Is(p.cause, chart.ErrNoChart):
		at, next = path.Root("chart"), "Correct the name of the chart, or its location."
	case errors.Is(p.cause, chart.ErrCredentials):
		at, next = path.Root("registry"), "Set `registry.username` and `registry.password_wo` of a user with read access."
		if m.Registry.IsNull() {
			at = repository
		}
	case errors.Is(p.cause, chart.ErrWithoutTLS):
		at, next = repository, p.withoutTLS()
	case errors.Is(p.cause, chart.ErrCertificate):
		at, next = repository, "Set `registry.ca` to the authority that signed the certificate of the server."
	case errors.Is(p.cause, chart.ErrDamaged):
		at, next = path.Root("chart"), "Choose another version, or ask the publisher of the chart."
	default:
		at, next = repository, "Apply again when the server answers."
	}

	return at, next
}

// withoutTLS says what to do about a server without TLS.
func (p *chartProblem) withoutTLS() string {
	const risk = "an attacker on the network can then read credentials and replace the chart"

	switch {
	case !p.source.InRegistry():
		return "Correct the port, or write http:// instead of https://: " + risk + "."
	case p.source.PlainHTTP:
		return "Also set `registry.pass_credentials = true`, so that `registry.plain_http` applies to servers other than " +
			"that of the chart: " + risk + "."
	default:
		return "Correct the port, or set `registry.plain_http = true`: " + risk + "."
	}
}
