package client

import (
	"context"
	"errors"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
)

// NotReadyError is a wait for objects, or for a hook, that came to no good end.
type NotReadyError struct {
	// Objects that are not as they should be.
	Objects []NotReady
	// Cause is why the wait ended: the timeout (context.DeadlineExceeded), an interruption
	// (context.Canceled), or an object that never will be ready.
	Cause error
	// Hook is whether it was waited for as a hook of the chart.
	Hook bool
}

// NotReady is an object that is not ready.
type NotReady struct {
	Object objects.Reference
	// Text names it with the reason, such as "Deployment default/web: ...". Below the first line there may be
	// more, such as the end of a log.
	Text string
}

// Error implements error. It is one line: Helm makes it the description of the revision.
func (e *NotReadyError) Error() string {
	text := oneLine(e.Cause.Error())

	for i, object := range e.Objects {
		first, _, _ := strings.Cut(object.Text, "\n")

		if i == 0 {
			text += ": " + first
		} else {
			text += "; " + first
		}
	}

	return text
}

func oneLine(text string) string { return strings.ReplaceAll(text, "\n", " ") }

// Unwrap is the cause.
func (e *NotReadyError) Unwrap() error { return e.Cause }

// timeoutError is an expired timeout.
type timeoutError struct{ error }

func (e *timeoutError) Unwrap() error { return e.error }

// Is makes it context.DeadlineExceeded, for every cause.
func (e *timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// interruptedError is a wait that the user or a context ended.
type interruptedError struct{ cause error }

func (e *interruptedError) Error() string {
	if e.cause == context.Canceled { //nolint:errorlint // one that says more is to be read
		return "interrupted"
	}

	return "interrupted: " + e.cause.Error()
}

func (e *interruptedError) Unwrap() error { return e.cause }

// Is makes it context.Canceled, for every cause.
func (e *interruptedError) Is(target error) bool { return target == context.Canceled }

// ending is why a context ended, for those who waited in it.
func ending(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &timeoutError{context.Cause(ctx)}
	}

	return &interruptedError{context.Cause(ctx)}
}
