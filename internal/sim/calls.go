package sim

import (
	"context"
	"slices"
)

// Calls returns every call since the start (or the last ForgetCalls) in order of arrival.
func (s *Simulator) Calls() []Call {
	return s.calls.all()
}

// CallsTo returns the calls of one method, in order of arrival.
func (s *Simulator) CallsTo(method string) []Call {
	return slices.DeleteFunc(s.Calls(), func(c Call) bool { return c.Method != method })
}

// ForgetCalls empties the record; numbering goes on.
func (s *Simulator) ForgetCalls() {
	s.calls.forget()
}

// SetOnCall replaces the hook that is asked before each call is served. Its error
// becomes the answer of the call (a gRPC status keeps its code), and nothing is done.
// It runs on the call's goroutine and may block, for example until a process is killed.
func (s *Simulator) SetOnCall(hook func(Call) error) {
	s.calls.ask(hook)
}

type callKey struct{}

// annotate lets a handler add to the detail of the call it serves.
func annotate(ctx context.Context, detail string) {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		c.Detail = detail
	}
}
