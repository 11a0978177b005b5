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
const addonAgain = "Applying again is safe: talosop reads what Helm recorded first, and goes on from there."

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
	return tf.Unable("apply", addonObject, finding.Report{
		Attempted: "prepare work on release " + m.Release().String(), Cause: CauseLines(err.Error()),
		Now: []string{"nothing was changed"}, Next: "Correct the cause and apply again.",
	})
}

// addonTwice is a release that two resources own.
func addonTwice(m addonModel) diag.Diagnostic {
	return tf.UnableAt(path.Root("name"), "create", addonObject, finding.Report{
		Attempted: "install release " + m.Release().String(),
		Cause:     []string{"another talosop_addon of this configuration has made the release of this name in this cluster"},
		Now:       []string{"the release is as the other resource made it"},
		Next:      "Remove one of the two, or give it another name.",
	})
}

// addonReplanned is a chart that differs from the plan.
func addonReplanned(m addonModel, chart *chart.Package) diag.Diagnostic {
	return tf.UnableAt(path.Root("version"), "upgrade", addonObject, finding.Report{
		Attempted: "fetch chart " + m.chartText() + " for release " + m.Release().String(),
		Cause: []string{fmt.Sprintf("it is %s %s by now, and was %s %s", chart.Name, chart.Version,
			m.ChartName.ValueString(), m.ChartVersion.ValueString())},
		Now: []string{"nothing was changed"}, Next: "Plan again with the version that is there.",
	})
}

// addonFailed is the error of an apply that failed.
func addonFailed(verb string, r *addonRun, outcome release.Outcome, err error, next string) diag.Diagnostic {
	what := addonReport(verb, r, outcome, err)
	what.Next = strings.TrimSpace(what.Next + "\n" + next)

	if at, known := attributeOfFailure(r.plan, err); known {
		return tf.UnableAt(at, verb, addonObject, what)
	}

	return tf.Unable(verb, addonObject, what)
}

// addonIncomplete is the warning of a create that did not finish.
func addonIncomplete(r *addonRun, outcome release.Outcome, err error) diag.Diagnostic {
	what := addonReport("install", r, outcome, err)
	what.Next = strings.TrimSpace(what.Next + "\nThe next apply goes on in place.")

	return tf.Incomplete(fmt.Sprintf("%s %s", addonObject, r.Spec.Name), what)
}

// addonReached is the warning of an apply that made the release as wanted and failed after that.
func addonReached(r *addonRun, verb string, outcome release.Outcome, err error) diag.Diagnostic {
	what := addonReport(verb, r, outcome, err)
	what.Now = append(what.Now, "the release has what is wanted, and is stored as that")
	what.Next = "Look at the cause. The next apply of a change goes on with what is left to do."

	return tf.Incomplete(fmt.Sprintf("%s %s", addonObject, r.Spec.Name), what)
}

func addonReport(verb string, r *addonRun, outcome release.Outcome, err error) finding.Report {
	what := finding.Report{
		Attempted: fmt.Sprintf("%s release %s with chart %s %s", verb, r.Spec.Name, r.chart.Name, r.chart.Version),
		Cause:     CauseLines(addonCause(err)), Next: nextAfter(err),
	}

	var failed *release.FailedError
	if errors.As(err, &failed) {
		what.Cause = CauseLines(addonCause(failed.Cause))
		for _, trouble := range failed.Diagnosis {
			what.Cause = append(what.Cause, strings.ReplaceAll(trouble, "\n", "\n    "))
		}

		what.Next = cmp.Or(failed.Next, what.Next)
	}

	what.Cause = append(what.Cause, tf.RanOutLines(r.ctx)...)

	for _, done := range outcome.Done {
		what.Now = append(what.Now, "done: "+done)
	}

	what.Now = append(what.Now, outcome.Notices...)

	if last, exists := outcome.Now.Last(); exists {
		what.Now = append(what.Now, fmt.Sprintf("revision %d is %s", last.Number, last.Status))
	}

	what.Cause, what.Now = r.redacted(what.Cause), r.redacted(what.Now)

	return what
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
		return "Import it, which shows first what would change: `terraform import <address> <namespace>/<name>`, or an " +
			"import block. Or set adopt = true to take it over and upgrade it at once; or choose another name."
	case errors.Is(err, release.ErrBusy):
		return "Wait until the other client is done, and apply again."
	case errors.Is(err, release.ErrUnreadable):
		return "Look at the Secrets of the release (`kubectl get secret -l owner=helm`) with the version of helm that made " +
			"them."
	case errors.Is(err, release.ErrOwned):
		return "Set take_ownership = true to make them part of this release, or remove them."
	case errors.Is(err, api.ErrNoAnswer):
		return "Apply again when the cluster answers. " + addonAgain
	default:
		return "Correct the cause and apply again. " + addonAgain
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

// warning is a warning about a release, whose name starts its detail.
func warning(summary string, of release.Name, detail string) diag.Diagnostic {
	return tf.Warn(summary, "Release "+of.String()+"\n\n"+detail)
}

// addonKept is a destroy of a release that its replacement has already taken over.
func addonKept(m addonModel) diag.Diagnostic {
	return warning("Addon stays installed", m.Release(), finding.Report{
		Attempted: "uninstall release " + m.Release().String(),
		Cause: []string{"another talosop_addon, such as a replacement with create_before_destroy, took the release " +
			"over in this run"},
		Now:  []string{"the release is as it was, and belongs to the other resource alone"},
		Next: "To install it again, replace it without create_before_destroy.",
	}.String())
}

// addonForgotten is a destroy without the cluster.
func addonForgotten(m addonModel, err error) diag.Diagnostic {
	return warning("Addon was forgotten", m.Release(), finding.Report{
		Attempted: "uninstall release " + m.Release().String(), Cause: CauseLines(err.Error()),
		Now: []string{"the resource is out of state, because on_unreachable is \"forget\"; if the cluster still exists, " +
			"the release does, too"},
		Next: "If it comes back, uninstall it with `helm uninstall " + m.Name.ValueString() + " -n " + m.Release().Namespace +
			"`, or import it.",
	}.String())
}

// addonNotRemoved is a destroy that did not finish.
func addonNotRemoved(ctx context.Context, m addonModel, err error) diag.Diagnostic {
	what := finding.Report{
		Attempted: "uninstall release " + m.Release().String(), Cause: CauseLines(addonCause(err)),
		Next: "Correct the cause and apply again: what is gone already is left alone.",
	}

	var failed *release.FailedError
	if errors.As(err, &failed) {
		what.Cause = append(CauseLines(addonCause(failed.Cause)), failed.Diagnosis...)
		what.Next = cmp.Or(failed.Next, what.Next)
	}

	what.Cause = append(what.Cause, tf.RanOutLines(ctx)...)

	if errors.Is(err, api.ErrNoAnswer) || errors.Is(err, errNoRoute) {
		what.Next = "Apply again when the cluster answers. When it is gone for good, set on_unreachable = \"forget\" and " +
			"apply before the destroy, or take the resource out of state (`terraform state rm`)."
	}

	return tf.Unable("delete", addonObject, what)
}

// diagnostic is a chart that an apply could not get.
func (p *chartProblem) diagnostic(m addonModel) diag.Diagnostic {
	at, next := p.place(m)

	return tf.UnableAt(at, "fetch", "chart", finding.Report{
		Attempted: fmt.Sprintf("fetch chart %s for release %s", m.chartText(), m.Release()),
		Cause:     CauseLines(p.cause.Error()),
		Now:       []string{"nothing was changed in the cluster"}, Next: next,
	})
}

// place is the attribute of a problem, and what to do.
func (p *chartProblem) place(m addonModel) (at path.Path, next string) {
	repository := path.Root("repository")
	if m.Repository.IsNull() {
		repository = path.Root("chart")
	}

	switch {
	case errors.Is(p.cause, chart.ErrNoVersion):
		at, next = path.Root("version"), "Choose a version that there is; devel = true also takes those before a release."
	case errors.Is(p.cause, chart.ErrNoChart):
		at, next = path.Root("chart"), "Correct the name of the chart, or where it comes from."
	case errors.Is(p.cause, chart.ErrCredentials):
		at, next = path.Root("registry"), "Give registry.username and registry.password_wo that may read the chart."
		if m.Registry.IsNull() {
			at = repository
		}
	case errors.Is(p.cause, chart.ErrWithoutTLS):
		at, next = repository, p.withoutTLS()
	case errors.Is(p.cause, chart.ErrCertificate):
		at, next = repository, "Give the authority that signed the server's certificate as registry.ca."
	case errors.Is(p.cause, chart.ErrDamaged):
		at, next = path.Root("chart"), "Choose another version, or ask the publisher of the chart."
	default:
		at, next = repository, "Apply again when the server answers."
	}

	return at, next
}

// withoutTLS says what to do about a server without TLS.
func (p *chartProblem) withoutTLS() string {
	const risk = "a machine in between can then read credentials and serve another chart"

	switch {
	case !p.source.InRegistry():
		return "Correct the port, or write http:// instead of https://: " + risk + "."
	case p.source.PlainHTTP:
		return "Set registry.pass_credentials = true, too, which has registry.plain_http count for other servers than " +
			"that of the chart: " + risk + "."
	default:
		return "Correct the port, or set registry.plain_http = true: " + risk + "."
	}
}
