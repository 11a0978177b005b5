package machines

import (
	"errors"
	"fmt"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/containers"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
)

const (
	applyAgain    = "Applying again is safe: talosop looks at every machine first and goes on where this run stopped."
	nothingStored = "Nothing was sent to any machine and nothing was stored. Correct the cause and apply again."
	destroyAgain  = "Destroying again is safe: machines that were reset are left alone."
)

// report describes the end of an unfinished run.
func (r run) report(p machineset.Set, attempted, next string) finding.Report {
	of := " of cluster"
	if p.Object == wholeCluster {
		of = "" // attempted already contains it
	}

	return finding.Report{
		Attempted: fmt.Sprintf("%s%s %q: %s", attempted, of, p.Settings.Name, finding.Describe(p.Names())),
		Cause:     providerdata.CausesOf(r.err, r.ranOut),
		Now:       r.standing(),
		Next:      next,
	}
}

// standing describes what was done, and the last observation of the machines: grouped by state, so that a report on
// many machines is readable.
func (r run) standing() []string {
	var lines []string

	done := machineset.LinesOf(r.result.Done)

	for i, line := range done {
		if i == finding.MostSteps {
			lines = append(lines, fmt.Sprintf("done: %d more steps", len(done)-i))

			break
		}

		lines = append(lines, "done: "+line)
	}

	var states finding.Alike[string]
	for _, m := range r.want.Known() {
		states.Add(machineset.StateOf(r.result.Snapshot.Machines[m.Name]), m.Name)
	}

	for state, names := range states.All() {
		lines = append(lines, finding.Describe(names)+": "+state)
	}

	return lines
}

// goneHost is the advice for a host cluster that is lost for good.
func goneHost(verb string) string {
	if verb != "destroy" {
		return ""
	}

	return " When the host cluster is gone for good, and its machines with it, take the resource out of state " +
		"(`terraform state rm`)."
}

// openFailed describes why an operation could not start: a mistake in settings, at its attribute, or unreadable
// secrets.
func openFailed(p machineset.Set, verb string, err error) finding.List {
	var problem *finding.FieldError
	if errors.As(err, &problem) {
		return machineset.FieldDiagnostics(p, err)
	}

	var unsuitable *providerdata.PreflightError
	if errors.As(err, &unsuitable) {
		return providerdata.FindingDiagnostics(p, unsuitable.Findings)
	}

	var other *containers.OtherHostError
	if errors.As(err, &other) {
		return finding.List{providerdata.OtherHost(p, verb, other)}
	}

	var silent *providerdata.HostSilentError
	if errors.As(err, &silent) {
		return finding.List{finding.Unable(verb, p.Object, finding.Report{
			Cause: strings.Split(err.Error(), "\n"),
			Now:   []string{"nothing was sent to the host cluster or to a machine, and nothing follows about them"},
			Next: "See that the host cluster answers, and that `host` of the resource or of the provider leads to it; then do " +
				"it again." + goneHost(verb),
		})}
	}

	return finding.List{finding.Unable(verb, p.Object, finding.Report{Cause: []string{err.Error()}, Next: nothingStored})}
}
