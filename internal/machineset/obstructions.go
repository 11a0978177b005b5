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

	known := refusedBefore(prior, record, last, policy)

	for _, r := range last.Refusals {
		message, at := changeRefused, finding.Path{}

		switch {
		case len(last.Holds) > 0:
			message = refusedAfterWait
		case slices.Contains(known, r):
			message = refusedAlready
		default:
			at = p.changedAt(prior, r.Machine)
		}

		diags.Append(message.At(at, finding.Args{"cluster": p.Settings.Name, "machine": r.Machine,
			"reason": finding.Sentences(reasonOf(r)), "remedy": finding.Sentences(r.Remedy)}))
	}

	if len(last.Holds) > 0 {
		diags.Append(applyWaits.With(finding.Args{"cluster": p.Settings.Name, "machines": machinesOf(last.Holds),
			"reasons": finding.Shortened(stringsOf(last.Holds))}))
	}

	return diags
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

// reasonOf is why something is refused, and for which machine.
func reasonOf(r step.Refusal) string {
	if r.Machine == "" {
		return r.Reason
	}

	return finding.MachinesNamed([]string{r.Machine}) + ": " + r.Reason
}

// placeOf is the attribute of a machine, or the resource itself for a name that is not one of its machines.
func (p Set) placeOf(machine string) finding.Path {
	if _, listed := p.Machines[machine]; !listed {
		return finding.Path{}
	}

	return p.machinePath(machine)
}
