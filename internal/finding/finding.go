// Package finding is what decisions say to a person: errors and warnings as values, each with the attribute that it
// is about. It knows nothing of Terraform; internal/provider/tf shows findings as diagnostics.
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

// Finding is one error or warning. Summaries are short and constant, because the CLIs group warnings by them; names and
// causes go to the detail, in the order in which a person asks for them. The summary of an error names its attribute
// where that is inside of another one: of a resource, the CLIs show the line of the outermost attribute at most.
type Finding struct {
	Severity        Severity
	At              Path
	Summary, Detail string
}

// List is findings in the order in which they are shown.
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

// Unable is the error of an operation that could not be done.
func Unable(verb, object string, r Report) Finding { return UnableAt(Path{}, verb, object, r) }

// UnableAt is Unable, caused by the value of an attribute.
func UnableAt(at Path, verb, object string, r Report) Finding {
	return Finding{Error, at, fmt.Sprintf("Unable to %s %s", verb, object), r.String()}
}

// Incomplete warns of work that was begun and did not finish.
func Incomplete(object string, r Report) Finding {
	return Finding{Severity: Warning, Summary: "Incomplete " + object, Detail: r.String()}
}

// Warn is a warning: of something that was observed and changes nothing, or of what an apply does to machines that
// are in service.
func Warn(summary, detail string) Finding {
	return Finding{Severity: Warning, Summary: summary, Detail: detail}
}

// Invalid is the error about a value of the configuration: what was found, what is allowed, and what to do about it.
func Invalid(at Path, what, found, allowed, remedy string) Finding {
	return Finding{Error, at, "Invalid " + at.name(what), Sentences(found, allowed, remedy)}
}

// Questionable is the warning about a value of the configuration that works, and that few people want.
func Questionable(at Path, what, found, consequence, remedy string) Finding {
	return Finding{Warning, at, "Questionable " + what, Sentences(found, consequence, remedy)}
}

// Refused is the error about a change that cannot be made, or not in one go.
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

// ProtectedEnd is the error about the end of a cluster, with the last control plane that a plan resets, where
// deletion_protection of one of them forbids it.
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

// Locked is the error about an operation on a resource of which machines are locked; none where none is.
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

// internalError is the summary of what the provider itself got wrong.
const internalError = "Error in the talosop provider"

// Bug is the error about something the provider itself got wrong.
func Bug(what string) Finding {
	return Finding{Severity: Error, Summary: internalError, Detail: what +
		". Please report this with the version of the provider and what was planned."}
}

// Endless warns of a plan that repeats itself, which no plan may.
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

// InvalidField is the error about a setting that internal/machineconfig refused, for these machines where they share
// the setting.
func InvalidField(p *FieldError, machines []string) Finding {
	found := "found " + p.Field.Found
	if len(machines) > 0 {
		found += ", for " + Briefly(machines)
	}

	return Invalid(p.At, p.At.Last(), found, Prefixed("allowed: ", p.Field.Allowed), p.Field.Fix)
}

// MistakesAt shows mistakes that internal/machineconfig found in the value of one attribute.
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

// Prefixed is a text with what goes before it; empty for an empty one.
func Prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}

	return prefix + text
}
