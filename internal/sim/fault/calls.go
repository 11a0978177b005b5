package fault

import (
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Personality is which of its two API servers a machine was running at the time of a call.
type Personality string

// Maintenance serves anyone, with a self-signed certificate and role os:reader.
const Maintenance Personality = "maintenance"

const (

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
	// Roles are those of the peer's certificate, or of whom it speaks for, separated by commas; os:reader in maintenance
	// mode.
	Roles string
	// Client is the serial number of the peer's certificate, and ClientEnds when that ends; empty and zero in maintenance
	// mode.
	Client     string
	ClientEnds time.Time
	// Detail is the object of the call: a resource, an apply mode, a path. Never secrets.
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

// Mutates reports whether the call can change a machine or a cluster. Reads of any kind
// and refused writes to resources do not.
func (c Call) Mutates() bool { return slices.Contains(mutatingMethods, c.Method) }

var mutatingMethods = []string{
	"ApplyConfiguration", "Bootstrap", "Reboot", "Reset", "Shutdown", "Rollback", "Upgrade", "Install",
	"EtcdRemoveMemberByID", "EtcdLeaveCluster", "EtcdForfeitLeadership", "EtcdRecover", "EtcdAlarmDisarm",
	"EtcdDefragment", "EtcdDowngradeEnable", "EtcdDowngradeCancel", "MetaWrite", "MetaDelete",
	"ServiceStart", "ServiceStop", "ServiceRestart", "ImagePull", "Pull", "Import", "Remove", "BlockDeviceWipe",
}

// Log is the site's record of calls.
type Log struct {
	mu      sync.Mutex
	entries []Call
	dropped int
	// connections that were accepted.
	connections int
	onCall      func(Call) error
	observe     func(Call)
}

// Begin records an arriving call and asks the hook whether it may be served.
func (l *Log) Begin(c Call) (Call, error) {
	l.mu.Lock()
	c.Seq = l.dropped + len(l.entries) + 1
	c.Time = time.Now()
	c.Code = codes.Unknown
	l.entries = append(l.entries, c)
	hook := l.onCall
	l.mu.Unlock()

	if hook == nil {
		return c, nil
	}

	return c, hook(c)
}

// End records the outcome of a call and notifies the observer.
func (l *Log) End(c Call, err error) {
	c.Done = true
	c.Duration = time.Since(c.Time)
	c.Code = status.Code(err)

	if err != nil && c.Code == codes.Unknown {
		c.Code = status.FromContextError(err).Code()
	}

	l.mu.Lock()
	if i := c.Seq - 1 - l.dropped; i >= 0 && i < len(l.entries) {
		l.entries[i] = c
	}
	observe := l.observe
	l.mu.Unlock()

	if observe != nil {
		observe(c)
	}
}

// NewLog makes a record that asks a hook before each call, and tells an observer after
// it; either may be nil.
func NewLog(onCall func(Call) error, observe func(Call)) *Log {
	return &Log{onCall: onCall, observe: observe}
}

// All returns all records, in order of arrival.
func (l *Log) All() []Call {
	l.mu.Lock()
	defer l.mu.Unlock()

	return slices.Clone(l.entries)
}

// Forget empties the record; numbering continues.
func (l *Log) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.dropped += len(l.entries)
	l.entries, l.connections = nil, 0
}

// Connected counts a connection that a machine accepted.
func (l *Log) Connected() {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.connections++
}

// Connections are how many machines accepted since the record was emptied.
func (l *Log) Connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.connections
}

// Ask replaces the hook that is asked before each call.
func (l *Log) Ask(hook func(Call) error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.onCall = hook
}
