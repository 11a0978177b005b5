// Package finding has the errors and warnings of decisions as values, each with its attribute, and the catalogs of
// their texts. It does not know Terraform; internal/provider/tf shows findings as diagnostics.
package finding

import (
	"fmt"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// Severity says whether a finding stops a plan or an apply.
type Severity int

// The severities.
const (
	Warning Severity = iota + 1
	Error
)

func (s Severity) String() string {
	if s == Error {
		return "Error"
	}

	return "Warning"
}

// Finding is one error or warning. Summaries are short and constant, because the CLIs group warnings by summary.
// Names and causes are in the detail, in the order in which a reader asks for them. The summary of an error names a
// nested attribute, because the CLIs show at most the line of the outermost attribute of a resource.
type Finding struct {
	Severity        Severity
	At              Path
	Summary, Detail string
	// Code and Args are those of the message in its catalog.
	Code string
	Args Args
}

// List is a list of findings in display order.
type List []Finding

// Append adds findings.
func (l *List) Append(more ...Finding) { *l = append(*l, more...) }

// HasError reports whether any finding is an error.
func (l List) HasError() bool {
	return len(l.Errors()) > 0
}

// Errors are the findings that are errors.
func (l List) Errors() List {
	var errors List

	for _, f := range l {
		if f.Severity == Error {
			errors.Append(f)
		}
	}

	return errors
}

// UnableAt is the error of an operation that failed, with the attribute that caused it.
func UnableAt(at Path, verb, object string, r Report) Finding {
	return Finding{Severity: Error, At: at, Summary: fmt.Sprintf("Unable to %s %s", verb, object), Detail: r.String()}
}

// Invalid is the error about a value of the configuration: what was found, what is allowed, and what to do.
func Invalid(at Path, what, found, allowed, remedy string) Finding {
	return Finding{Severity: Error, At: at, Summary: "Invalid " + at.name(what), Detail: Sentences(found, allowed, remedy)}
}

// Questionable is the warning about a value of the configuration that is valid but rarely wanted.
func Questionable(at Path, what, found, consequence, remedy string) Finding {
	return Finding{
		Severity: Warning, At: at, Summary: "Questionable " + what, Detail: Sentences(found, consequence, remedy),
	}
}

// Refused is the error about a change that cannot be made, or not in one apply.
func Refused(at Path, what, found, reason string, remedies ...string) Finding {
	return Finding{
		Severity: Error, At: at, Summary: what, Detail: Sentences(append([]string{found, reason}, remedies...)...),
	}
}

// InvalidField is the error about a setting that internal/machineconfig rejected, with the machines that share the
// setting.
func InvalidField(p *FieldError, machines []string) Finding {
	found := "found " + p.Field.Found
	if len(machines) > 0 {
		found += ", for " + Briefly(machines)
	}

	return Invalid(p.At, p.At.Last(), found, Prefixed("allowed: ", p.Field.Allowed), p.Field.Fix)
}

// MistakesAt converts the errors that internal/machineconfig found in the value of one attribute.
func MistakesAt(at Path, what string, err error) List {
	var list List

	fields := machineconfig.FieldErrors(err)
	for _, field := range fields {
		list.Append(Invalid(at, what, "found "+field.Found, Prefixed("allowed: ", field.Allowed), field.Fix))
	}

	if len(fields) == 0 {
		list.Append(Invalid(at, what, err.Error(), "", ""))
	}

	return list
}

// Prefixed adds a prefix to a text; an empty text stays empty.
func Prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}

	return prefix + text
}
