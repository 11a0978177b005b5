package lifecycle

import (
	"context"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// Awaited is a [Machine] that reports when its observation may have changed. Other machines are asked more often.
type Awaited interface {
	// Await returns when the observation may have changed, or when the machine is gone. It changes nothing. An error
	// means that there was nothing to await, or that the context ended.
	Await(ctx context.Context, last step.MachineState) error
}

// AwaitedNodes is a [Kubernetes] that reports changes of its nodes.
type AwaitedNodes interface {
	// WatchNodes calls changed whenever Observe would report other nodes, or when it cannot tell, until the context
	// ends. It changes nothing.
	WatchNodes(ctx context.Context, changed func())
}

// news awaits changes of the machines and nodes of a run, which are then observed at once. An awaited machine is
// polled rarely.
type news struct {
	observer *observer
	// came receives a value when something changed.
	came chan struct{}
	// derive makes the context of a waiter, which close ends.
	derive func() (context.Context, context.CancelFunc)
	end    context.CancelFunc
	all    sync.WaitGroup

	mu       sync.Mutex
	awaiting map[string]*waiter
	// backoffs is the report of each machine before its last news, and how often it was the same.
	backoffs map[string]backoff
}

// backoff is news after which a machine reports the same as before.
type backoff struct {
	last  watchedState
	times int
}

// waiter awaits a change of a machine's report.
type waiter struct {
	last watchedState
	// rarely is true when the machine can be polled rarely meanwhile.
	rarely bool
	end    context.CancelFunc
}

// watchedState is the part of a machine's report whose change is awaited.
type watchedState struct {
	access step.Access
	stage  step.Stage
	ready  bool
	boot   string
}

func watchedStateOf(s step.MachineState) watchedState {
	return watchedState{s.Access, s.Stage, s.Ready, s.BootID}
}

// awaitNews makes an observer await nodes and, from its next observation on, machines.
func (o *observer) awaitNews(ctx context.Context) {
	ctx, end := context.WithCancel(ctx)

	n := &news{observer: o, came: make(chan struct{}, 1), end: end, awaiting: map[string]*waiter{},
		backoffs: map[string]backoff{}}
	n.derive = func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }
	o.news = n

	if nodes, ok := o.runner.Kubernetes.(AwaitedNodes); ok {
		// Without it, they are still polled.
		n.all.Go(func() {
			_ = panics.Call(func() { nodes.WatchNodes(ctx, func() { n.tell("") }) })
		})
	}
}

// close ends all waiters. Nothing is awaited afterward.
func (n *news) close() {
	n.end()
	n.all.Wait()
}

// tell makes the next observation ask the machine that changed.
func (n *news) tell(name string) {
	n.observer.outdate(name)

	select {
	case n.came <- struct{}{}:
	default: // a change is already signaled
	}
}

// follow awaits changes of the unsettled machines, based on their last reports.
func (n *news) follow(have cluster.Snapshot, resting map[string]bool) {
	for _, m := range n.observer.machines() {
		state, seen := have.Machines[m.Name]
		awaited := seen && state.Busy == "" && !resting[m.Name]

		n.mu.Lock()
		before := n.awaiting[m.Name]
		n.mu.Unlock()

		if awaited && before != nil && before.last == watchedStateOf(state) {
			continue
		}

		n.forget(m.Name, before)

		if api, tells := n.observer.runner.Fleet.Machine(m).(Awaited); awaited && tells {
			n.await(m, api, state)
		}
	}
}

// forget ends a waiter.
func (n *news) forget(name string, w *waiter) {
	if w == nil {
		return
	}

	w.end()

	n.mu.Lock()
	defer n.mu.Unlock()

	if n.awaiting[name] == w {
		delete(n.awaiting, name)
	}
}

// newsPause is the pause between two news of one machine. It doubles up to an interval while the report stays the
// same. So a machine that accepts connections and reports nothing is not asked more often than without news.
const newsPause = 200 * time.Millisecond

// pause is the pause of a machine that has news after a report.
func (n *news) pause(name string, last watchedState) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()

	before := n.backoffs[name]
	if before.last != last {
		before = backoff{last: last}
	}

	longest := n.observer.runner.interval()
	pause := min(newsPause<<before.times, longest)

	if pause < longest {
		before.times++
	}

	n.backoffs[name] = before

	return pause
}

// await starts a waiter. A waiter without news stays until the machine is observed to differ.
func (n *news) await(m cluster.Machine, api Awaited, state step.MachineState) {
	ctx, end := n.derive()
	w := &waiter{last: watchedStateOf(state), end: end, rarely: m.Role == step.Worker && state.Answers()}

	n.mu.Lock()
	n.awaiting[m.Name] = w
	n.mu.Unlock()

	n.all.Go(func() {
		defer end()

		begun := time.Now()

		if err := panics.Do(func() error { return api.Await(ctx, state) }); err != nil {
			n.mu.Lock()
			w.rarely = false
			n.mu.Unlock()

			return
		}

		pause := time.NewTimer(time.Until(begun.Add(n.pause(m.Name, w.last))))
		defer pause.Stop()

		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}

		n.forget(m.Name, w)
		n.tell(m.Name)
	})
}

// rarely reports whether a machine can be polled rarely, because it reports changes itself.
func (n *news) rarely(name string) bool {
	if n == nil {
		return false
	}

	n.mu.Lock()
	defer n.mu.Unlock()

	w := n.awaiting[name]

	return w != nil && w.rarely
}
