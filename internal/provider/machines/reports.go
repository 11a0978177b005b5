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

// wholeCluster is the name of the resource in messages.
const wholeCluster = "cluster"

// objectOf names the machines of a resource in the summary of a message. The CLIs fold warnings with equal summaries.
func objectOf(p machineset.Set) string {
	if p.Object == wholeCluster {
		return p.Object + " " + p.Settings.Name
	}

	return runName(p) + " of cluster " + p.Settings.Name
}

// report describes the end of an unfinished run.
func (r run) report(stop providerdata.Stop) finding.Report {
	return finding.Report{Cause: stop.Causes, Now: r.standing()}
}

// stop is why the run stopped.
func (r run) stop() providerdata.Stop { return providerdata.StopOf(r.err, r.ranOut) }

// standing describes what was done, and the last observation of the machines: grouped by state, so that a report on
// many machines is readable.
func (r run) standing() []string {
	var lines []string

	if !r.result.Touched {
		lines = append(lines, "nothing was sent to any machine")
	}

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
		return finding.List{hostSilent.Report(finding.Path{},
			finding.Args{"verb": verb, "object": objectOf(p), "destroys": verb == "destroy"},
			finding.Report{
				Cause: strings.Split(err.Error(), "\n"),
				Now:   []string{"nothing was sent to the host cluster or to a machine"},
			})}
	}

	return finding.List{startFailed.Report(finding.Path{}, finding.Args{"verb": verb, "object": objectOf(p)},
		finding.Report{Cause: []string{err.Error()}, Now: []string{"nothing was sent to any machine"}})}
}
