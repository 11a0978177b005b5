package tf

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

// Report is the detail of a diagnostic about work on machines.
type Report struct {
	// Attempted is what was being done.
	Attempted string
	// Cause is what came back, one line for each cause.
	Cause []string
	// Now is the state things are in.
	Now []string
	// Next says whether applying again is safe, and what to do.
	Next string
}

func (r Report) String() string {
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

// Unable is the error of an operation that could not be done.
func Unable(verb, object string, r Report) diag.Diagnostic {
	return diag.NewErrorDiagnostic(fmt.Sprintf("Unable to %s %s", verb, object), r.String())
}

// UnableAt is unable, caused by the value of an attribute.
func UnableAt(at path.Path, verb, object string, r Report) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(at, fmt.Sprintf("Unable to %s %s", verb, object), r.String())
}

// Incomplete warns of work that was begun and did not finish.
func Incomplete(object string, r Report) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Incomplete "+object, r.String())
}

// NotReady warns of something that was observed and changes nothing.
func NotReady(summary, detail string) diag.Diagnostic {
	return diag.NewWarningDiagnostic(summary, detail)
}

// Announced warns of what an apply of the plan does to machines that are in service.
func Announced(summary, detail string) diag.Diagnostic {
	return diag.NewWarningDiagnostic(summary, detail)
}

// Invalid is the error about a value of the configuration: what was found, what
// is allowed, and what to do about it.
func Invalid(at path.Path, what, found, allowed, remedy string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(at, "Invalid "+what, Sentences(found, allowed, remedy))
}

// Doubtful is the warning about a value of the configuration that works, and that
// few people want.
func Doubtful(at path.Path, what, found, consequence, remedy string) diag.Diagnostic {
	return diag.NewAttributeWarningDiagnostic(at, "Doubtful "+what, Sentences(found, consequence, remedy))
}

// Refused is the error about a change that cannot be made, or not in one go.
func Refused(at path.Path, what, found, reason string, remedies ...string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(at, what, Sentences(append([]string{found, reason}, remedies...)...))
}

// Protected is the error about a removal that deletion_protection forbids.
func Protected(object, id, operation string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("deletion_protection"), "Deletion protection is on",
		Sentences(
			fmt.Sprintf("%s %q would be %s, and its deletion_protection is true", object, id, operation),
			"Nothing was changed",
			"To remove it, set deletion_protection = false and apply, then plan the removal again",
		))
}

// Bug is the error about something the provider itself got wrong.
func Bug(what string) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Error in the talosop provider",
		what+". Please report this with the version of the provider and what was planned.")
}

// Endless warns of a plan that repeats itself, which no plan may.
func Endless(object string) diag.Diagnostic {
	return diag.NewWarningDiagnostic("Error in the talosop provider",
		"The plan of the "+object+" does not come to an end, and operations lists its beginning. The apply stops as soon as nothing changes any more. "+
			"Please report this with the version of the provider and what was planned.")
}

func Sentences(parts ...string) string {
	var out []string

	for _, p := range parts {
		if p != "" {
			out = append(out, strings.ToUpper(p[:1])+strings.TrimSuffix(p[1:], ".")+".")
		}
	}

	return strings.Join(out, " ")
}

// InvalidSecrets is the error about a bundle that cannot be used. Its causes name
// parts of the bundle and never quote them.
func InvalidSecrets(at path.Path, err error) diag.Diagnostic {
	return Invalid(at, "secrets", strings.Join(strings.Split(err.Error(), "\n"), "; "),
		"Allowed is YAML as `talosctl gen secrets` writes it",
		"Use bundle of a talosop_secrets resource, or import the secrets of a cluster that exists into one")
}

// InvalidField is the error about a setting that internal/machineconfig refused.
func InvalidField(p *FieldError) diag.Diagnostic {
	what := "value"
	if steps := p.At.Steps(); len(steps) > 0 {
		what = lastName(steps)
	}

	return Invalid(p.At, what, "found "+p.Field.Found, Prefixed("allowed: ", p.Field.Allowed), p.Field.Fix)
}

// MistakesAt shows mistakes that internal/machineconfig found in the value of one
// attribute.
func MistakesAt(at path.Path, what string, err error) diag.Diagnostics {
	var diags diag.Diagnostics

	fields := machineconfig.FieldErrors(err)
	for _, field := range fields {
		diags.Append(Invalid(at, what, "found "+field.Found, Prefixed("allowed: ", field.Allowed), field.Fix))
	}

	if len(fields) == 0 {
		diags.Append(Invalid(at, what, err.Error(), "", ""))
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

func Prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}

	return prefix + text
}
