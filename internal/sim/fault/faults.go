package fault

import (
	"cmp"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

// Fault makes calls to one machine go wrong. Which calls: those of Method, from the
// From-th on (counted from 1 since the fault was set), Count of them or for the time
// For. What happens: Latency first, then at most one of Cut, Crash, EndEarly, Code before the
// call is served, or in the middle of it with After; DropResponse after it was served.
type Fault struct {
	// Method is an RPC name such as "Bootstrap"; "" or "*" is every call.
	Method string
	// From is the first matching call that is hit; 0 means 1.
	From int
	// Count is how many calls are hit; 0 means one, negative means all that follow.
	Count int
	// For, when set, hits every matching call in this time after the first hit
	// instead of Count calls: a machine that is unavailable for a while.
	For time.Duration
	// After lets it happen in the middle of a stream of bytes, such as EtcdSnapshot and
	// EtcdRecover: with the message in which that many have come together. A stream that has
	// fewer is not hit.
	After int

	// Latency delays the call.
	Latency time.Duration
	// Code and Message are answered instead of serving the call.
	Code    codes.Code
	Message string
	// Cut closes the connection instead of serving the call.
	Cut bool
	// Crash switches the machine off instead of serving the call; see Machine.PowerOn.
	Crash bool
	// EndEarly ends a stream of bytes half way as if it was complete, as Talos does when
	// etcd fails under a snapshot (Talos 1.13, EtcdSnapshot). It needs After.
	EndEarly bool
	// DropResponse serves the call and then closes the connection, so that the
	// effect happened and the client cannot know.
	DropResponse bool
}

// armed is a Fault with its counters.
type armed struct {
	Fault

	seen  int
	since time.Time
}

// counts advances the fault's counter for a call and says whether it is hit.
func (f *armed) counts(c Call) bool {
	if f.Method != "" && f.Method != "*" && !strings.EqualFold(f.Method, c.Method) {
		return false
	}

	f.seen++

	from, count := max(f.From, 1), f.Count
	if f.seen < from {
		return false
	}

	if f.For > 0 {
		if f.since.IsZero() {
			f.since = c.Time
		}

		return c.Time.Sub(f.since) < f.For
	}

	count = cmp.Or(count, 1)

	return count < 0 || f.seen < from+count
}

// Table holds the faults of all machines; key is the machine's name.
type Table struct {
	mu     sync.Mutex
	faults map[string][]*armed
}

// Hit returns the fault that applies to this call, if any. The first in order of
// SetFault wins; every matching fault counts the call.
func (t *Table) Hit(c Call) (Fault, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()

	var (
		found Fault
		ok    bool
	)

	for _, f := range t.faults[c.Machine] {
		if f.counts(c) && !ok {
			found, ok = f.Fault, true
		}
	}

	return found, ok
}

// Set adds a fault to a machine.
func (t *Table) Set(machine string, f Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if t.faults == nil {
		t.faults = map[string][]*armed{}
	}

	t.faults[machine] = append(t.faults[machine], &armed{Fault: f})
}

// Clear removes the faults of a machine.
func (t *Table) Clear(machine string) {
	t.mu.Lock()
	defer t.mu.Unlock()

	delete(t.faults, machine)
}
