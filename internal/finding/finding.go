// Package finding has the errors and warnings of decisions as values, each with its attribute. It does not know
// Terraform; internal/provider/tf shows findings as diagnostics.
package finding

import (
	"fmt"
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

// Unable is the error of an operation that failed.
func Unable(verb, object string, r Report) Finding { return UnableAt(Path{}, verb, object, r) }

// UnableAt is Unable with the attribute that caused it.
func UnableAt(at Path, verb, object string, r Report) Finding {
	return Finding{Error, at, fmt.Sprintf("Unable to %s %s", verb, object), r.String()}
}

// Incomplete warns about work that began and did not finish.
func Incomplete(object string, r Report) Finding {
	return Finding{Severity: Warning, Summary: "Incomplete " + object, Detail: r.String()}
}

// Warn is a warning: about an observation that changes nothing, or about the effect of an apply on machines in
// service.
func Warn(summary, detail string) Finding {
	return Finding{Severity: Warning, Summary: summary, Detail: detail}
}

// Invalid is the error about a value of the configuration: what was found, what is allowed, and what to do.
func Invalid(at Path, what, found, allowed, remedy string) Finding {
	return Finding{Error, at, "Invalid " + at.name(what), Sentences(found, allowed, remedy)}
}

// Questionable is the warning about a value of the configuration that is valid but rarely wanted.
func Questionable(at Path, what, found, consequence, remedy string) Finding {
	return Finding{Warning, at, "Questionable " + what, Sentences(found, consequence, remedy)}
}

// Refused is the error about a change that cannot be made, or not in one apply.
func Refused(at Path, what, found, reason string, remedies ...string) Finding {
	return Finding{Error, at, what, Sentences(append([]string{found, reason}, remedies...)...)}
}

// Protected is the error about a removal that deletion_protection forbids.
func Protected(object, id, operation string) Finding {
	return Finding{Error, Root("deletion_protection"), "Deletion protection is on", Sentences(
		fmt.Sprintf("%s %q would be %s, and its deletion_protection is true", object, id, operation),
		"Nothing was changed",
		"To remove it, set deletion_protection = false and apply, then plan the removal again",
	)}
}

// What a plan does to objects whose machines it resets.
const (
	OperationDestroy = "destroyed"
	OperationReplace = "replaced"
)

// ProtectedEnd is the error about a plan that resets the last control plane of a cluster while deletion_protection
// forbids it.
func ProtectedEnd(object, operation, protected string) Finding {
	next := "To give the cluster up, set deletion_protection = false on all of them and apply, then plan the removal again"
	if operation == OperationReplace {
		next = "Replace one control plane in each apply"
	}

	return Finding{Error, Root("deletion_protection"), "Deletion protection is on", Sentences(
		fmt.Sprintf("%s would be %s together with all other control planes of its cluster, and deletion_protection of "+
			"%s is true",
			object, operation, protected),
		"Nothing was changed", next)}
}

// Locked is the error about an operation on a resource with locked machines; empty if none is locked.
func Locked(object, id, operation string, machines []string) List {
	if len(machines) == 0 {
		return nil
	}

	return List{{Error, Path{}, "Machines are locked", Sentences(
		fmt.Sprintf("%s %q would be %s, and %s %s locked", object, id, operation, Describe(machines),
			Verb(machines, "is", "are")),
		"Nothing was changed",
		"To remove it, set locked = false on every machine that has it and apply, then plan the removal again",
	)}}
}

// internalError is the summary of an internal error of the provider.
const internalError = "Error in the talosop provider"

// Bug is an internal error of the provider.
func Bug(what string) Finding {
	return Finding{Severity: Error, Summary: internalError, Detail: what +
		". Please report this with the version of the provider and what was planned."}
}

// Endless warns about a plan that repeats itself, which is an internal error.
func Endless(object string) Finding {
	return Warn(internalError, "The plan of the "+object+" does not come to an end, and operations lists its beginning. "+
		"The apply stops as soon as nothing changes any more. Please report this with the version of the provider and what "+
		"was planned.")
}

// InvalidSecrets is the error about a bundle that cannot be used. Its causes name parts of the bundle and never quote
// them.
func InvalidSecrets(at Path, err error) Finding {
	return Invalid(at, "secrets", strings.Join(strings.Split(err.Error(), "\n"), "; "),
		"Allowed is YAML as `talosctl gen secrets` writes it",
		"Use bundle of a talosop_secrets resource, or import the secrets of a cluster that exists into one")
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
