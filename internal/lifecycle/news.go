package lifecycle

import (
	"context"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/panics"
)

// Awaited is a [Machine] that tells when it may say something else than it said. Others are asked more often.
type Awaited interface {
	// Await returns once that may be so, also when it is gone. It changes nothing. An error says that nothing was awaited,
	// or that the context ended.
	Await(ctx context.Context, said step.MachineState) error
}

// AwaitedNodes is a [Kubernetes] that tells of its nodes.
type AwaitedNodes interface {
	// WatchNodes calls changed whenever Observe would say something else of nodes, until the context ends; also when it
	// cannot say whether that is so. It changes nothing.
	WatchNodes(ctx context.Context, changed func())
}

// news awaits what happens to the machines and nodes of a run, which then observes at once what it is. What is awaited
// is asked rarely.
type news struct {
	observer *observer
	// came is sent to when something happened.
	came chan struct{}
	// derive makes the context of a waiter, which close ends.
	derive func() (context.Context, context.CancelFunc)
	end    context.CancelFunc
	all    sync.WaitGroup

	mu       sync.Mutex
	awaiting map[string]*waiter
	// heard is what each machine said before the last news of it, and how often it said the same.
	heard map[string]echo
}

// echo is news after which a machine said what it had said before.
type echo struct {
	said  sight
	times int
}

// waiter awaits what a machine says after it said that.
type waiter struct {
	said sight
	// rarely is whether the machine need not be asked often meanwhile.
	rarely bool
	end    context.CancelFunc
}

// sight is what of a machine is awaited to change.
type sight struct {
	access step.Access
	stage  step.Stage
	ready  bool
	boot   string
}

func sightOf(s step.MachineState) sight { return sight{s.Access, s.Stage, s.Ready, s.BootID} }

// awaitNews has an observer await nodes and, from its next look on, machines.
func (o *observer) awaitNews(ctx context.Context) {
	ctx, end := context.WithCancel(ctx)

	n := &news{observer: o, came: make(chan struct{}, 1), end: end, awaiting: map[string]*waiter{},
		heard: map[string]echo{}}
	n.derive = func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }
	o.news = n

	if nodes, ok := o.runner.Kubernetes.(AwaitedNodes); ok {
		// Without it they are asked all the same.
		n.all.Go(func() {
			_ = panics.Call(func() { nodes.WatchNodes(ctx, func() { n.tell("") }) })
		})
	}
}

// close ends what is awaited. Nothing is followed afterwards.
func (n *news) close() {
	n.end()
	n.all.Wait()
}

// tell has the next look ask whom something happened to.
func (n *news) tell(name string) {
	n.observer.outdate(name)

	select {
	case n.came <- struct{}{}:
	default: // it is known already that something did
	}
}

// follow awaits the machines that are on their way, by what they said last.
func (n *news) follow(have cluster.Snapshot, resting map[string]bool) {
	for _, m := range n.observer.machines() {
		state, seen := have.Machines[m.Name]
		awaited := seen && state.Busy == "" && !resting[m.Name]

		n.mu.Lock()
		before := n.awaiting[m.Name]
		n.mu.Unlock()

		if awaited && before != nil && before.said == sightOf(state) {
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

// newsPause is between two news of one machine, and doubles up to an interval as long as nothing is new: one that takes
// connections and says nothing is asked no more often than without news.
const newsPause = 200 * time.Millisecond

// pause is that for a machine that has news after it said something.
func (n *news) pause(name string, said sight) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()

	before := n.heard[name]
	if before.said != said {
		before = echo{said: said}
	}

	longest := n.observer.runner.interval()
	pause := min(newsPause<<before.times, longest)

	if pause < longest {
		before.times++
	}

	n.heard[name] = before

	return pause
}

// await begins a waiter. One that hears nothing stays until the machine is seen to be another way.
func (n *news) await(m cluster.Machine, api Awaited, state step.MachineState) {
	ctx, end := n.derive()
	w := &waiter{said: sightOf(state), end: end, rarely: m.Role == step.Worker && state.Answers()}

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

		pause := time.NewTimer(time.Until(begun.Add(n.pause(m.Name, w.said))))
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

// rarely is whether a machine need not be asked often, because it tells when there is something new.
func (n *news) rarely(name string) bool {
	if n == nil {
		return false
	}

	n.mu.Lock()
	defer n.mu.Unlock()

	w := n.awaiting[name]

	return w != nil && w.rarely
}
