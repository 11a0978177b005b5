package machineset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/hostcluster/workload"
)

// Unread are machines that a snapshot could not observe, with a line for each that has the reason.
type Unread struct{ Machines, Reasons []string }

func (u *Unread) add(machine, reason string) {
	u.Machines, u.Reasons = append(u.Machines, machine), append(u.Reasons, reason)
}

// Unanswered lists what a snapshot could not observe, and the machines whose data is lost.
func Unanswered(want cluster.Spec, have cluster.Snapshot) (unreachable, foreign, lost Unread) {
	for _, m := range want.Machines {
		state := have.Machines[m.Name]

		switch state.Access {
		case step.Unreachable, step.Unobserved:
			if state.VolumesLost {
				lost.add(m.Name, m.Name+": "+state.Cause)

				continue
			}

			unreachable.add(m.Name, fmt.Sprintf("%s (%s): %s", m.Name, m.Address, cmp.Or(state.Cause, "not asked in time")))
		case step.Foreign:
			foreign.add(m.Name, fmt.Sprintf("%s (%s): %s", m.Name, m.Address,
				cmp.Or(state.Cause, "answers with another identity")))
		case step.Member, step.Maintenance, step.Gone:
		}
	}

	return unreachable, foreign, lost
}

// WarnOfUnanswered warns about what a snapshot could not observe. An apply waits for unreachable machines with
// troubles.
func WarnOfUnanswered(want cluster.Spec, have cluster.Snapshot, troubles []health.Trouble) finding.List {
	var diags finding.List

	warn := func(message finding.Message, of Unread) {
		if len(of.Machines) > 0 {
			diags.Append(message.With(finding.Args{"cluster": want.Name, "machines": of.Machines, "reasons": of.Reasons}))
		}
	}

	unreachable, foreign, lost := Unanswered(want, have)
	if len(unreachable.Machines) > 0 {
		var awaited []string

		for _, t := range troubles {
			if slices.Contains(unreachable.Machines, t.Machine) {
				awaited = append(awaited, t.Machine)
			}
		}

		diags.Append(machinesUnreachable.With(finding.Args{"cluster": want.Name, "machines": unreachable.Machines,
			"reasons": unreachable.Reasons, "awaited": awaited}))
	}

	warn(volumesLost, lost)
	warn(identityMismatch, foreign)

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

// GoneWhen is the run that found machines gone from their host cluster.
type GoneWhen int

// The runs.
const (
	GoneInRefresh GoneWhen = iota
	GoneInUpdate
	GoneInDestroy
)

// WarnOfGone warns about recorded machines that do not exist on a host cluster.
func WarnOfGone(gone []string, host workload.Identity, when GoneWhen) finding.List {
	if len(gone) == 0 {
		return nil
	}

	message := map[GoneWhen]finding.Message{GoneInRefresh: machinesGone, GoneInUpdate: machinesRecreated,
		GoneInDestroy: machinesGoneBefore}[when]
	on := ""

	if host.Server != "" {
		on = host.String()
	}

	return finding.List{message.With(finding.Args{"machines": gone, "host": on})}
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

// StateOf describes the last observation of one or several machines, after their names and a colon.
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
		return "answering with another identity"
	case step.Gone:
		return "not on the host cluster"
	case step.Unreachable, step.Unobserved:
		return "not answering"
	default:
		return string(s.Access)
	}
}
