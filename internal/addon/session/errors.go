package session

import (
	"context"
	"errors"
	"strings"
)

// NotReadyError is a wait for objects, or for a hook, that came to no good end.
type NotReadyError struct {
	// Objects that are not as they should be, each with the reason, such as
	// "Deployment default/web: ...".
	Objects []string
	// Cause is why the wait ended: the timeout (context.DeadlineExceeded), an interruption
	// (context.Canceled), or an object that never will be ready.
	Cause error
}

// Error implements error.
func (e *NotReadyError) Error() string {
	if len(e.Objects) == 0 {
		return e.Cause.Error()
	}

	return e.Cause.Error() + ": " + strings.Join(e.Objects, "; ")
}

// Unwrap is the cause.
func (e *NotReadyError) Unwrap() error { return e.Cause }

// lateError is a time that is over.
type lateError struct{ error }

func (e *lateError) Unwrap() error { return e.error }

// Is makes it context.DeadlineExceeded, whatever cause was given.
func (e *lateError) Is(target error) bool { return target == context.DeadlineExceeded }

// interruptedError is a wait that somebody ended.
type interruptedError struct{ cause error }

func (e *interruptedError) Error() string {
	if e.cause == context.Canceled { //nolint:errorlint // one that says more is to be read
		return "interrupted"
	}

	return "interrupted: " + e.cause.Error()
}

func (e *interruptedError) Unwrap() error { return e.cause }

// Is makes it context.Canceled, whatever cause was given.
func (e *interruptedError) Is(target error) bool { return target == context.Canceled }

// ending is why a context ended, for those who waited in it.
func ending(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &lateError{context.Cause(ctx)}
	}

	return &interruptedError{context.Cause(ctx)}
}
