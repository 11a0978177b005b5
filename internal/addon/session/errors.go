package session

import "strings"

// NotReadyError is a wait for objects, or for a hook, that came to no good end.
type NotReadyError struct {
	// Objects that are not as they should be, each with the reason: "Deployment default/web: ...".
	Objects []string
	// Cause is why the wait ended: the timeout (context.DeadlineExceeded), an interruption
	// (context.Canceled), or an object that never will be ready.
	Cause error
}

// Error implements error.
func (e *NotReadyError) Error() string {
	return e.Cause.Error() + ": " + strings.Join(e.Objects, "; ")
}

// Unwrap is the cause.
func (e *NotReadyError) Unwrap() error { return e.Cause }
