// Package finding has the errors and warnings of decisions as values, each with its attribute, and the catalogs of
// their texts. It does not know Terraform; internal/provider/tf shows findings as diagnostics.
package finding

import (
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

// Severity says whether a finding stops a plan or an apply.
type Severity int

// The severities.
const (
	Warning Severity = iota + 1
	Error
)

// Args are the arguments of a message by name: names and texts, lists of them, numbers, or values that print
// themselves.
type Args map[string]any

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
	// Found is the part of Detail that says what an invalid value is, and Fix is the rest. Other findings have neither.
	Found, Fix string
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

// InvalidField is the error about a setting that internal/machineconfig rejected, with the machines that share the
// setting.
func InvalidField(p *FieldError, machines []string) Finding {
	return invalidSetting.At(p.At, Args{"found": strings.TrimSuffix(p.Field.Found, "."), "machines": machines,
		"allowed": strings.TrimSuffix(p.Field.Allowed, "."), "fix": Sentences(p.Field.Fix),
		"converted": indented(p.Field.Converted)})
}

// indented keeps the CLIs from breaking the lines of a text.
func indented(text string) string {
	if text == "" {
		return ""
	}

	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}

// MistakesAt converts the errors that internal/machineconfig found in the value of one attribute.
func MistakesAt(at Path, err error) List {
	var list List

	fields := machineconfig.FieldErrors(err)
	for _, field := range fields {
		list.Append(InvalidField(&FieldError{At: at, Field: field}, nil))
	}

	if len(fields) == 0 {
		list.Append(Bug(err.Error()))
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
