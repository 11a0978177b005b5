package lifecycle_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// point is a call that changes a machine in an undisturbed run: the n-th of a method on a machine, or on any machine
// where none is named.
type point struct {
	machine, method string
	n               int
}

func (p point) String() string {
	return fmt.Sprintf("%s %s %d", p.method, cmp.Or(p.machine, "any"), p.n)
}

// anyMember are the calls to the etcd leader or to the first member that answers. Their machine differs between runs.
var anyMember = []string{"EtcdForfeitLeadership", "EtcdRemoveMemberByID"}

// points are the recorded calls that changed machines. The number of leadership transfers depends on the leader, so
// the first one stands for all.
func (s *site) points() []point {
	var points []point

	seen := map[point]int{}

	for _, c := range s.sim.Calls() {
		if !c.Mutates() || c.Code != codes.OK || !c.Done {
			continue
		}

		p := point{machine: c.Machine, method: c.Method}
		if slices.Contains(anyMember, c.Method) {
			p.machine = ""
		}

		seen[p]++

		if c.Method != "EtcdForfeitLeadership" || seen[p] == 1 {
			points = append(points, point{p.machine, p.method, seen[p]})
		}
	}

	return points
}

// counter finds the call of a point.
func (p point) counter() func(fault.Call) bool {
	var calls atomic.Int64

	return func(c fault.Call) bool {
		return c.Method == p.method && (p.machine == "" || c.Machine == p.machine) && calls.Add(1) == int64(p.n)
	}
}

// runs is what a process does with a runner.
type runs func(context.Context, *lifecycle.Runner, cluster.Spec) error

// disturbance is a way in which a run fails at a point. A fault affects the next run, and a kill ends its own
// process.
type disturbance struct {
	name    string
	disturb func(s *site, at point, run runs)
}

// disturbances are a refusal, a broken connection, a lost answer, and the end of the process before and after the
// call is served.
func disturbances() []disturbance {
	injecting := func(f fault.Fault) func(*site, point, runs) {
		return func(s *site, at point, _ runs) { s.inject(at, f) }
	}

	return []disturbance{
		{"unavailable", injecting(fault.Fault{Code: codes.Unavailable, Message: "injected"})},
		{"killed before", func(s *site, at point, run runs) { s.kill(at, false, run) }},
		{"answer lost", injecting(fault.Fault{DropResponse: true})},
		{"killed after", func(s *site, at point, run runs) { s.kill(at, true, run) }},
		{"cut", injecting(fault.Fault{Cut: true})},
	}
}

// impatience is how long a test waits for the effect of a struck call.
const impatience = 3 * time.Second

// inject makes the call of a point fail. The test fails if the point is not reached before the next inject or kill,
// or its end.
func (s *site) inject(at point, injected fault.Fault) {
	s.t.Helper()
	s.expectStruck()

	s.timeouts.Settle = impatience

	var struck atomic.Bool

	is := at.counter()

	s.sim.SetOnCall(func(c fault.Call) error {
		if !is(c) {
			return nil
		}

		struck.Store(true)

		return s.strike(c, true, injected)
	})

	s.unstruck = func() {
		if !struck.Load() {
			s.t.Errorf("%s was never called, so that nothing was struck", at)
		}
	}
}

// expectStruck checks that the last point was struck.
func (s *site) expectStruck() {
	s.t.Helper()

	if s.unstruck != nil {
		s.unstruck()
	}

	s.unstruck = nil
}

// kill runs runs in a process that is killed at the call of a point, before or after the machine serves it. The
// connections of the process break, its other calls reach no machine, and its Lease stays. The test does not wait for
// the rest of the process.
func (s *site) kill(at point, served bool, run runs) {
	s.t.Helper()
	s.expectStruck()

	var (
		p       = &process{conns: map[net.Conn]bool{}}
		reached = make(chan struct{})
		ended   = make(chan error, 1)
		target  atomic.Int64
	)

	ctx, cancel := context.WithCancel(bounded(s.t))
	is := at.counter()
	strike := func() {
		p.kill()
		cancel()
		close(reached)
	}

	s.sim.SetOnCall(func(c fault.Call) error {
		switch {
		case p.killed():
			return status.Error(codes.Unavailable, "the process is gone")
		case !is(c):
			return nil
		case served:
			target.Store(int64(c.Seq))

			return nil
		default:
			strike()

			return status.Error(codes.Unavailable, "the process is gone")
		}
	})

	after := func(c fault.Call) {
		if served && int64(c.Seq) == target.Load() {
			strike()
		}
	}
	s.served.Store(&after)

	doomed := s.runnerIn(p)
	tell := doomed.Events

	doomed.Events = func(e lifecycle.Event) {
		if !p.killed() {
			tell(e)
		}
	}

	want := s.want // it does not see what is recorded later
	want.Machines, want.Removed = slices.Clone(want.Machines), slices.Clone(want.Removed)

	go func() { ended <- run(ctx, doomed, want) }()

	select {
	case <-reached:
	case err := <-ended:
		s.t.Fatalf("the run ended before %s: %v", at, err)
	}

	s.served.Store(nil)
	s.sim.SetOnCall(nil)
	s.t.Cleanup(func() { <-ended })
}

// killedLock is how long the Lease of a killed process excludes others.
const killedLock = 2 * time.Second

// process can be killed: its later messages reach no machine. A nil process is never killed.
type process struct {
	mu    sync.Mutex
	dead  bool
	conns map[net.Conn]bool
}

var errKilled = errors.New("the process was killed")

func (p *process) killed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.dead
}

func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.dead = true

	for conn := range p.conns {
		_ = conn.Close()
	}
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// dialer makes the connections of the process.
func (p *process) dialer(dial dialer) dialer {
	if p == nil {
		return dial
	}

	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}

	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if p.killed() {
			return nil, errKilled
		}

		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}

		p.mu.Lock()
		defer p.mu.Unlock()

		if p.dead {
			_ = conn.Close()

			return nil, errKilled
		}

		p.conns[conn] = true

		return conn, nil
	}
}

// A point without a call fails the test, so that no test passes that disturbed nothing.
func TestKill_needsItsPoint(t *testing.T) {
	t.Parallel()

	is := point{machine: "cp-1", method: "Reboot", n: 2}.counter()
	calls := []fault.Call{{Machine: "cp-1", Method: "Get"}, {Machine: "cp-1", Method: "Reboot"},
		{Machine: "cp-2", Method: "Reboot"}}

	for _, c := range calls {
		if is(c) {
			t.Errorf("%s is taken for the second reboot of cp-1", c)
		}
	}

	if !is(calls[1]) {
		t.Error("the second reboot of cp-1 is not found")
	}
}
