package provider

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// All diagnostics of the provider are made in this file. A summary is short and
// constant, because the CLIs group by it; names and causes go to the detail, in
// the order in which a person asks for them.

// report is the detail of a diagnostic about work on machines.
type report struct {
	// Attempted is what was being done.
	Attempted string
	// Cause is what came back, one line for each cause.
	Cause []string
	// Now is the state things are in.
	Now []string
	// Next says whether applying again is safe, and what to do.
	Next string
}

func (r report) String() string {
	var b strings.Builder

	section := func(title string, lines ...string) {
		if len(lines) == 0 || lines[0] == "" {
			return
		}

		if b.Len() > 0 {
			b.WriteString("\n\n")
		}

		b.WriteString(title)

		if len(lines) == 1 {
			b.WriteString(" " + lines[0])

			return
		}

		for _, line := range lines {
			b.WriteString("\n  - " + line)
		}
	}

	section("Attempted:", r.Attempted)
	section("Cause:", r.Cause...)
	section("State now:", r.Now...)
	section("Next:", r.Next)

	return b.String()
}

// unable is the error of an operation that could not be done.
func unable(verb, object string, r report) diag.Diagnostic {
	return diag.NewErrorDiagnostic(fmt.Sprintf("Unable to %s %s", verb, object), r.String())
}

// unableAt is unable, caused by the value of an attribute.
func unableAt(at path.Path, verb, object string, r report) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(at, fmt.Sprintf("Unable to %s %s", verb, object), r.String())
}

// incomplete warns of work that was begun and did not finish.
func incomplete(object string, r report) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Incomplete "+object, r.String())
}

// unsettled warns of something that was observed and changes nothing.
func unsettled(summary, detail string) diag.Diagnostic {
	return diag.NewWarningDiagnostic(summary, detail)
}

// announced warns of what an apply of the plan does to machines that are in service.
func announced(summary, detail string) diag.Diagnostic {
	return diag.NewWarningDiagnostic(summary, detail)
}

// invalid is the error about a value of the configuration: what was found, what
// is allowed, and what to do about it.
func invalid(at path.Path, what, found, allowed, remedy string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(at, "Invalid "+what, sentences(found, allowed, remedy))
}

// doubtful is the warning about a value of the configuration that works, and that
// few people want.
func doubtful(at path.Path, what, found, consequence, remedy string) diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(at, "Doubtful "+what, sentences(found, consequence, remedy))
}

// refused is the error about a change that cannot be made, or not in one go.
func refused(at path.Path, what, found, reason string, remedies ...string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(at, what, sentences(append([]string{found, reason}, remedies...)...))
}

// protected is the error about a removal that deletion_protection forbids.
func protected(object, id, operation string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("deletion_protection"), "Deletion protection is on",
		sentences(
			fmt.Sprintf("%s %q would be %s, and its deletion_protection is true", object, id, operation),
			"Nothing was changed",
			"To remove it, set deletion_protection = false and apply, then plan the removal again",
		))
}

// bug is the error about something the provider itself got wrong.
func bug(what string) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Error in the talosop provider",
		what+". Please report this with the version of the provider and what was planned.")
}

// endless warns of a plan that repeats itself, which no plan may.
func endless(object string) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Error in the talosop provider",
		"The plan of the "+object+" does not come to an end, and operations lists its beginning. The apply stops as soon as nothing changes any more. "+
			"Please report this with the version of the provider and what was planned.")
}

func sentences(parts ...string) string {
	var out []string

	for _, p := range parts {
		if p != "" {
			out = append(out, strings.ToUpper(p[:1])+strings.TrimSuffix(p[1:], ".")+".")
		}
	}

	return strings.Join(out, " ")
}

// invalidSecrets is the error about a bundle that cannot be used. Its causes name
// parts of the bundle and never quote them.
func invalidSecrets(at path.Path, err error) diag.Diagnostic {
	return invalid(at, "secrets", strings.Join(strings.Split(err.Error(), "\n"), "; "),
		"Allowed is YAML as `talosctl gen secrets` writes it",
		"Use bundle of a talosop_secrets resource, or import the secrets of a cluster that exists into one")
}

// invalidField is the error about a setting that internal/machineconfig refused.
func invalidField(p *fieldError) diag.Diagnostic {
	what := "value"
	if steps := p.at.Steps(); len(steps) > 0 {
		what = lastName(steps)
	}

	return invalid(p.at, what, "found "+p.field.Found, prefixed("allowed: ", p.field.Allowed), p.field.Fix)
}

// mistakesAt shows mistakes that internal/machineconfig found in the value of one
// attribute.
func mistakesAt(at path.Path, what string, err error) diag.Diagnostics {
	var diags diag.Diagnostics

	fields := machineconfig.FieldErrors(err)
	for _, field := range fields {
		diags.Append(invalid(at, what, "found "+field.Found, prefixed("allowed: ", field.Allowed), field.Fix))
	}

	if len(fields) == 0 {
		diags.Append(invalid(at, what, err.Error(), "", ""))
	}

	return diags
}

// lastName is the name of the innermost attribute of a path.
func lastName(steps path.PathSteps) string {
	for i := len(steps) - 1; i >= 0; i-- {
		if name, ok := steps[i].(path.PathStepAttributeName); ok {
			return string(name)
		}
	}

	return "value"
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}

	return prefix + text
}
