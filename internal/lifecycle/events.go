package lifecycle

import (
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// EventState is the state that an event reports.
type EventState string

// The states of events. A step that fails may be retried, and is then started again. A machine, or the run where no
// machine is named, waits until Reason no longer holds; each round reports it. A note is about a running step, or
// about the run.
const (
	StepStarted  EventState = "started"
	StepFinished EventState = "finished"
	StepFailed   EventState = "failed"
	Waiting      EventState = "waiting"
	Note         EventState = "note"
)

// Event is what happened in a run, reported as it happens. It holds no secrets.
type Event struct {
	State EventState
	// Machine is empty for events about the whole run.
	Machine string
	// Step is nil for events about no step.
	Step step.Step
	// Reason is why a step failed, why the run waits, or the text of a note.
	Reason string
	// Elapsed is the duration of a finished step.
	Elapsed time.Duration
}

// tell sends an event to the receiver of the run's events.
func (r *Runner) tell(e Event) {
	if r.Events != nil {
		r.Events(e)
	}
}
