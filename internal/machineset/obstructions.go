package machineset

import (
	"fmt"
	"slices"
	"strings"

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
	var (
		diags   finding.List
		waiting []string
	)

	if len(last.Steps) > 0 {
		return finding.List{finding.Endless(p.Object)}
	}

	known := refusedAlready(prior, record, last, policy)

	for _, r := range last.Refusals {
		if len(last.Holds) > 0 {
			diags.Append(finding.Warn("The apply will be refused",
				finding.Sentences(reasonOf(r), "That is so once what the apply waits for has happened", r.Remedy)))
		} else if slices.Contains(known, r) {
			diags.Append(finding.Warn("The apply will be refused",
				finding.Sentences(reasonOf(r), "That is so without this change, too", r.Remedy)))
		} else {
			diags.Append(finding.Refused(p.changedAt(prior, r.Machine), "Unsupported change of machines", reasonOf(r),
				"Nothing would be sent to any machine", r.Remedy))
		}
	}

	for i, h := range last.Holds {
		if i == finding.MostSteps {
			waiting = append(waiting, fmt.Sprintf("%d more", len(last.Holds)-i))

			break
		}

		waiting = append(waiting, h.String())
	}

	if len(waiting) > 0 {
		diags.Append(finding.Warn("The apply will have to wait",
			"By what state knows, it will not come to its end before something else happens to the machines. "+
				"It waits for that until its time is out (see timeouts), and goes on then: `operations` and `impact` have "+
				"what it does after it, too.\n  - "+strings.Join(waiting, "\n  - ")))
	}

	return diags
}

// refusedAlready is what would be refused with the configuration of the state.
func refusedAlready(prior Set, record Record, last cluster.Decision, policy cluster.Policy) []step.Refusal {
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
