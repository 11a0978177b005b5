package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// Decision is the planner's answer for a spec and a snapshot. With refusals there are no steps. Without steps, holds
// and refusals the work is done, except for what is kept and what stays behind.
type Decision struct {
	// Steps may run now, in order, at most one on each machine. They are independent and may run in parallel.
	Steps []step.Step
	// Holds is everything that must wait, and why.
	Holds []step.Hold
	// Refusals end the run.
	Refusals []step.Refusal
	// Kept is what is not done because machines are locked. The run does not wait for it.
	Kept []step.Kept
	// Behind is what this run leaves to a later one. It would make a kubelet newer than an API server of another
	// resource, which no run will upgrade.
	Behind []step.Kept
	// Yields is true when the rest waits for machines of another resource, whose run needs the lock, or for the
	// maintenance window, which opens at Opens.
	Yields bool
	Opens  time.Time

	// named are the machines of steps and holds while the plan is made.
	named map[string]bool
	// awaited are the machines whose holds end because of other runs.
	awaited []string
}

// Done reports whether nothing is left to do or to wait for.
func (d Decision) Done() bool {
	return len(d.Steps) == 0 && len(d.Holds) == 0 && len(d.Refusals) == 0
}

func (d *Decision) step(s step.Step) {
	d.Steps = append(d.Steps, s)
	d.name(s.On())
}

func (d *Decision) name(machine string) {
	if d.named != nil {
		d.named[machine] = true
	}
}

func (d *Decision) hold(machine, format string, args ...any) {
	d.Holds = append(d.Holds, step.Hold{Machine: machine, Reason: fmt.Sprintf(format, args...)})
	d.name(machine)
}

func (d *Decision) refuse(machine, reason, remedy string) {
	d.Refusals = append(d.Refusals, step.Refusal{Machine: machine, Reason: reason, Remedy: remedy})
}

// Because is a cause in brackets, to append to a sentence; empty without one.
func Because(cause string) string {
	if cause == "" {
		return ""
	}

	return " (" + cause + ")"
}

func (d *Decision) steps(machine string) bool {
	return slices.ContainsFunc(d.Steps, func(s step.Step) bool { return s.On() == machine })
}

func (d *Decision) concerns(machine string) bool {
	if d.named != nil {
		return d.named[machine]
	}

	return d.steps(machine) || slices.ContainsFunc(d.Holds, func(h step.Hold) bool { return h.Machine == machine })
}

// membershipChange names the machine whose etcd membership a step already changes: one changes at a time.
func (d *Decision) membershipChange() string {
	for _, s := range d.Steps {
		if s.ChangesMembers() {
			return s.On()
		}
	}

	return ""
}
