package sim

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Personality is which of its two API servers a machine was running at the time of a call.
type Personality string

const (
	// Maintenance serves anyone, with a self-signed certificate and role os:reader.
	Maintenance Personality = "maintenance"
	// Configured serves clients with a certificate of the cluster's Talos CA.
	Configured Personality = "configured"
)

// Call is one RPC that reached a machine. Calls refused by TLS never become a Call,
// and a call that was forwarded is recorded by the machine that served it only.
type Call struct {
	// Seq numbers calls in order of arrival, from 1, over the whole site.
	Seq int
	// Time is when the call arrived.
	Time time.Time
	// Duration is zero until the call is finished.
	Duration time.Duration
	// Machine is the name of the machine that served it.
	Machine string
	// Method is the last element of the RPC's name, such as "ApplyConfiguration";
	// resource reads are "Get", "List" and "Watch".
	Method string
	// Service is the RPC's service, such as "machine.MachineService".
	Service string
	// Personality of the machine.
	Personality Personality
	// Detail says what was asked for: a resource, an apply mode, a path. Never secrets.
	Detail string
	// Code is the outcome; codes.Unknown with Done false while the call is running.
	Code codes.Code
	// Done is set when the call is finished.
	Done bool
}

// String is the one line printed per call.
func (c Call) String() string {
	parts := []string{c.Machine, c.Method}
	if c.Detail != "" {
		parts = append(parts, c.Detail)
	}

	outcome := "running"
	if c.Done {
		outcome = c.Code.String()
	}

	return strings.Join(append(parts, "("+string(c.Personality)+")", outcome), " ")
}

// Mutates says whether the call can change a machine or a cluster. Reads of any kind
// and refused writes to resources do not.
func (c Call) Mutates() bool { return slices.Contains(mutatingMethods, c.Method) }

var mutatingMethods = []string{
	"ApplyConfiguration", "Bootstrap", "Reboot", "Reset", "Shutdown", "Rollback", "Upgrade", "Install",
	"EtcdRemoveMemberByID", "EtcdLeaveCluster", "EtcdForfeitLeadership", "EtcdRecover", "EtcdAlarmDisarm",
	"EtcdDefragment", "EtcdDowngradeEnable", "EtcdDowngradeCancel", "MetaWrite", "MetaDelete",
	"ServiceStart", "ServiceStop", "ServiceRestart", "ImagePull", "Pull", "Import", "Remove", "BlockDeviceWipe",
}

// callLog is the site's record of calls.
type callLog struct {
	mu      sync.Mutex
	calls   []Call
	dropped int
	onCall  func(Call) error
	observe func(Call)
}

// begin records an arriving call and asks the hook whether it may be served.
func (l *callLog) begin(c Call) (Call, error) {
	l.mu.Lock()
	c.Seq = l.dropped + len(l.calls) + 1
	c.Time = time.Now()
	c.Code = codes.Unknown
	l.calls = append(l.calls, c)
	hook := l.onCall
	l.mu.Unlock()

	if hook == nil {
		return c, nil
	}

	return c, hook(c)
}

func (l *callLog) end(c Call, err error) {
	c.Done = true
	c.Duration = time.Since(c.Time)
	c.Code = status.Code(err)

	if err != nil && c.Code == codes.Unknown {
		c.Code = status.FromContextError(err).Code()
	}

	l.mu.Lock()
	if i := c.Seq - 1 - l.dropped; i >= 0 && i < len(l.calls) {
		l.calls[i] = c
	}
	observe := l.observe
	l.mu.Unlock()

	if observe != nil {
		observe(c)
	}
}

// Calls returns every call since the start (or the last ForgetCalls) in order of arrival.
func (s *Simulator) Calls() []Call {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()

	return slices.Clone(s.calls.calls)
}

// CallsTo returns the calls of one method, in order of arrival.
func (s *Simulator) CallsTo(method string) []Call {
	return slices.DeleteFunc(s.Calls(), func(c Call) bool { return c.Method != method })
}

// ForgetCalls empties the record; numbering goes on.
func (s *Simulator) ForgetCalls() {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()

	s.calls.dropped += len(s.calls.calls)
	s.calls.calls = nil
}

// SetOnCall replaces the hook that is asked before each call is served. Its error
// becomes the answer of the call (a gRPC status keeps its code), and nothing is done.
// It runs on the call's goroutine and may block, for example until a process is killed.
func (s *Simulator) SetOnCall(hook func(Call) error) {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()

	s.calls.onCall = hook
}

type callKey struct{}

// annotate lets a handler add to the detail of the call it serves.
func annotate(ctx context.Context, detail string) {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		c.Detail = detail
	}
}
