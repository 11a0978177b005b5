package sim

import (
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// Calls returns every call since the start (or the last ForgetCalls) in order of arrival.
func (s *Simulator) Calls() []fault.Call {
	return s.calls.All()
}

// CallsTo returns the calls of one method, in order of arrival.
func (s *Simulator) CallsTo(method string) []fault.Call {
	return slices.DeleteFunc(s.Calls(), func(c fault.Call) bool { return c.Method != method })
}

// Connections are how many the Talos APIs of all machines accepted since the start (or the last ForgetCalls).
func (s *Simulator) Connections() int { return s.calls.Connections() }

// ForgetCalls empties the record; numbering continues.
func (s *Simulator) ForgetCalls() {
	s.calls.Forget()
}

// SetOnCall replaces the hook that is asked before each call is served. Its error
// becomes the answer of the call (a gRPC status keeps its code), and nothing is done.
// It runs on the call's goroutine and may block, for example until a process is killed.
func (s *Simulator) SetOnCall(hook func(fault.Call) error) {
	s.calls.Ask(hook)
}
