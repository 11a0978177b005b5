package machineset

import (
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// obstructions are the findings about what keeps an apply from finishing, from the last decision of a forecast.
//
// An obstacle that the change itself causes is an error. An existing obstacle is a warning: the apply ends with the
// same message, but still stores how the resource treats its machines, which may resolve it. An obstacle after a wait
// is a warning too, because the wait may end differently.
func obstructions(p, prior Set, record Record, last cluster.Decision, policy cluster.Policy) finding.List {
	var diags finding.List

	if len(last.Steps) > 0 {
		return finding.List{finding.Endless(p.Object)}
	}

	var machines finding.Alike[obstruction]

	known := refusedBefore(prior, record, last, policy)

	for _, r := range last.Refusals {
		of := obstruction{message: &changeRefused, reason: r.Reason, remedy: r.Remedy}

		switch {
		case len(last.Holds) > 0:
			of.message = &refusedAfterWait
		case slices.Contains(known, r):
			of.message = &refusedAlready
		}

		machines.Add(of, r.Machine)
	}

	for of, names := range machines.All() {
		diags.Append(p.obstructed(prior, of, finding.NonEmpty(names...)))
	}

	if len(last.Holds) > 0 {
		diags.Append(applyWaits.With(finding.Args{"cluster": p.Settings.Name, "machines": machinesOf(last.Holds),
			"reasons": finding.Shortened(stringsOf(last.Holds))}))
	}

	return diags
}

// obstruction is what machines are refused for. It is comparable, so that those with the same one are named together.
type obstruction struct {
	message        *finding.Message
	reason, remedy string
}

// obstructed is the finding about machines with the same obstruction. A cluster as a whole has no machine.
func (p Set) obstructed(prior Set, of obstruction, machines []string) finding.Finding {
	var at []finding.Path

	reason := of.reason
	if len(machines) > 0 {
		reason = finding.MachinesNamed(machines) + ": " + reason
	}

	if of.message == &changeRefused {
		for _, name := range machines {
			at = append(at, p.changedAt(prior, name))
		}
	}

	return of.message.At(finding.Common(at), finding.Args{"cluster": p.Settings.Name, "machines": machines,
		"reason": finding.Sentences(reason), "remedy": finding.Sentences(of.remedy)})
}

// refusedBefore is what would be refused with the configuration of the state.
func refusedBefore(prior Set, record Record, last cluster.Decision, policy cluster.Policy) []step.Refusal {
	if len(last.Refusals) == 0 || !prior.Unknown.Renders() {
		return nil
	}

	recorded, diags := NewPriorState(record, prior, prior)

	files, more := prior.RenderForPlan()
	diags.Append(more...)

	if diags.HasError() {
		return nil // then only the change makes it valid
	}

	recorded, more = recorded.withChanges(prior, prior, prior.renderOnce(), files)
	if more.HasError() {
		return nil
	}

	_, before := recorded.forecast(prior, files, policy)

	return before.Refusals
}

// placeOf is the attribute of machines, or the resource itself for a name that is not one of its machines.
func (p Set) placeOf(machines ...string) finding.Path {
	var at []finding.Path

	for _, name := range machines {
		if _, listed := p.Machines[name]; !listed {
			return finding.Path{}
		}

		at = append(at, p.machinePath(name))
	}

	return finding.Common(at)
}
