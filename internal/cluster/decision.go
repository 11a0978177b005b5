package cluster

import (
	"fmt"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// Decision is what the planner answers for one pair of wish and observation.
// With refusals there are no steps. Without steps, holds and refusals the work
// is done, but for what is kept and what stays behind.
type Decision struct {
	// Steps that may run now, in order, at most one on each machine. They are
	// independent of each other and may run side by side.
	Steps []step.Step
	// Holds is everything that has to wait, and why.
	Holds []step.Hold
	// Refusals end the run.
	Refusals []step.Refusal
	// Kept is what is not done because machines are locked. Nobody waits for it.
	Kept []step.Kept
	// Behind is what this run leaves to a later one: it would make a kubelet newer than an API server of another
	// resource, and no run is going to change that.
	Behind []step.Kept
	// Yields is true when what is left waits for machines of another resource, whose run needs the lock for that, or for
	// the maintenance window, which opens at Opens.
	Yields bool
	Opens  time.Time

	// named are the machines of steps and holds, while a plan is made.
	named map[string]bool
	// awaited are the machines with holds that other runs lift.
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
