package lifecycle

import (
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// EventState is what an event tells.
type EventState string

// The states of events. A step that fails may be tried again, and is started anew then. A machine waits, or the run
// does where no machine is named, until what Reason says is over: it is told in each round. A note is what a step does
// on its way, or a run beside its steps.
const (
	StepStarted  EventState = "started"
	StepFinished EventState = "finished"
	StepFailed   EventState = "failed"
	Waiting      EventState = "waiting"
	Note         EventState = "note"
)

// Event is what happens in a run, told while it happens. It holds no secrets.
type Event struct {
	State EventState
	// Machine is empty for what is about the whole run.
	Machine string
	// Step is nil for what is about none.
	Step step.Step
	// Reason says why a step failed, what is waited for, or what the note is.
	Reason string
	// Elapsed is how long a step took that ended.
	Elapsed time.Duration
}

// tell passes an event on to whoever follows the run.
func (r *Runner) tell(e Event) {
	if r.Events != nil {
		r.Events(e)
	}
}
