package machineset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// Unanswered lists, machine by machine, what a snapshot could not observe, and the reason for those whose data is
// lost.
func Unanswered(want cluster.Spec, have cluster.Snapshot) (unreachable, foreign, volumesLost []string) {
	for _, m := range want.Machines {
		state := have.Machines[m.Name]

		switch state.Access {
		case step.Unreachable, step.Unobserved:
			if state.VolumesLost {
				volumesLost = append(volumesLost, m.Name+": "+state.Cause)

				continue
			}

			unreachable = append(unreachable,
				fmt.Sprintf("%s (%s): %s", m.Name, m.Address, cmp.Or(state.Cause, "not asked in time")))
		case step.Foreign:
			foreign = append(foreign, fmt.Sprintf("%s (%s): %s", m.Name, m.Address,
				cmp.Or(state.Cause, "answers with another identity")))
		case step.Member, step.Maintenance, step.Gone:
		}
	}

	return unreachable, foreign, volumesLost
}

// WarnOfUnanswered warns about what a snapshot could not observe.
func WarnOfUnanswered(want cluster.Spec, have cluster.Snapshot) finding.List {
	var diags finding.List

	unreachable, foreign, volumesLost := Unanswered(want, have)

	if len(unreachable) > 0 {
		diags.Append(finding.Warn("Machines do not answer",
			"These machines could not be asked, so what was last seen of them is kept. Silence does not mean that "+
				"they are gone.\n  - "+strings.Join(unreachable, "\n  - ")))
	}

	if len(volumesLost) > 0 {
		diags.Append(finding.Warn("Volumes of machines are lost",
			"The host cluster can never use the volumes of these machines again. The next apply gives them "+
				"new ones, one machine after the other and as far as etcd does not need what is lost, and they join anew.\n  - "+
				strings.Join(volumesLost, "\n  - ")))
	}

	if len(foreign) > 0 {
		diags.Append(finding.Warn("Unexpected machine identity",
			"At these addresses something else answers than the machines that are meant. What "+
				"was last seen of the machines is kept, and nothing will be sent there. Correct the addresses; when the hardware "+
				"of a machine was exchanged on purpose, set its uuid to the new one.\n  - "+strings.Join(foreign, "\n  - ")))
	}

	return diags
}

// GoneOf lists the recorded machines of a set that do not exist on the host cluster.
func (r Record) GoneOf(p Set, seen workload.Observation) []string {
	return slices.DeleteFunc(p.Names(), func(name string) bool {
		_, known := r.Machines[name]

		return !known || seen.Machines[name].Exists
	})
}

// GoneIn is GoneOf for the result of a refresh.
func (r Record) GoneIn(want cluster.Spec, have cluster.Snapshot) []string {
	var gone []string

	for _, m := range want.Machines {
		if _, known := r.Machines[m.Name]; known && have.Machines[m.Name].Access == step.Gone {
			gone = append(gone, m.Name)
		}
	}

	return gone
}

// WarnOfGone warns about recorded machines that do not exist on a host cluster. next is what happens to them.
func WarnOfGone(gone []string, host workload.Identity, next string) finding.List {
	if len(gone) == 0 {
		return nil
	}

	on := "the host cluster"
	if host.Server != "" {
		on += " of " + host.String()
	}

	return finding.List{finding.Warn("Machines are gone from the host cluster",
		fmt.Sprintf("State has %s, and %s has no StatefulSet, no pod and no volumes of %s. %s",
			finding.MachinesNamed(gone), on, finding.Verb(gone, "it", "them"), next))}
}

// Lost reports whether a machine that had joined waits in maintenance mode again, lost its volumes, or is known to
// lack its etcd member or its node. Such losses are certain, and the next apply repairs them.
func Lost(want cluster.Spec, have cluster.Snapshot, recorded PriorState) bool {
	for _, m := range want.Machines {
		if recorded.Machines[m.Name].Access != step.Member {
			continue
		}

		switch state := have.Machines[m.Name]; state.Access {
		case step.Maintenance, step.Gone:
			return true
		case step.Member:
			if len(missing(m, have)) > 0 {
				return true
			}
		default:
			if state.VolumesLost {
				return true
			}
		}
	}

	return false
}

// StateOf describes the last observation of a machine.
func StateOf(s step.MachineState) string {
	switch s.Access {
	case step.Maintenance:
		return "in maintenance mode"
	case step.Member:
		state := "in the cluster"
		if s.Stage != "" {
			state += ", " + string(s.Stage)
		}

		if !s.Ready && len(s.Unmet) > 0 {
			state += ", not ready (" + strings.Join(s.Unmet, ", ") + ")"
		}

		return state
	case step.Foreign:
		return "answers with another identity"
	case step.Gone:
		return "not on the host cluster"
	case step.Unreachable, step.Unobserved:
		return "does not answer"
	default:
		return string(s.Access)
	}
}
