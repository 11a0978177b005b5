package lifecycle

import (
	"errors"
	"fmt"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// Errors that end a run.
var (
	// ErrNoProgress means that a step succeeded without any effect.
	ErrNoProgress = errors.New("no progress")
	// ErrLeftBehind means that a teardown finished except for some machines.
	ErrLeftBehind = errors.New("some machines could not be reset")

	// errUnconfirmed marks the error of a step that was called off before its effect.
	errUnconfirmed = errors.New("canceled")
)

// StepError is the error of a step.
type StepError struct {
	Step step.Step
	Err  error
}

func (e *StepError) Error() string { return e.Step.String() + ": " + e.Err.Error() }

func (e *StepError) Unwrap() error { return e.Err }

// RefusedError is the error of a run that the planner refuses to begin or to continue.
type RefusedError struct{ Refusals []step.Refusal }

func (e *RefusedError) Error() string {
	texts := make([]string, len(e.Refusals))
	for i, r := range e.Refusals {
		texts[i] = r.String()
	}

	return strings.Join(texts, "; ")
}

// IncompleteError is the error of a run that did not finish. Another run continues.
type IncompleteError struct {
	// Phase is the phase of the cluster.
	Phase cluster.Phase
	// Holds is why the run waited.
	Holds []step.Hold
	// Failed has the last error of each machine, except for one that is Err.
	Failed []*StepError
	// Done lists the finished steps.
	Done []step.Step
	// Err is why the run stopped.
	Err error
}

func (e *IncompleteError) Error() string {
	var b strings.Builder

	fmt.Fprintf(&b, "stopped in phase %s: %v", e.Phase, e.Err)

	for _, failed := range e.Failed {
		fmt.Fprintf(&b, "; %v", failed)
	}

	for _, h := range e.Holds {
		fmt.Fprintf(&b, "; %s", h)
	}

	return b.String()
}

// Unwrap returns the cause, so that errors.Is finds a canceled or expired context.
func (e *IncompleteError) Unwrap() error { return e.Err }
