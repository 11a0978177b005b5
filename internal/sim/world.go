package sim

import (
	"context"
	"sync"
)

// world guards the model that the machines of a site share, and tells of its changes.
type world struct {
	mu      sync.Mutex
	changed chan struct{}
	log     func(format string, args ...any)
}

// newWorld makes an empty one, which reports to log.
func newWorld(log func(format string, args ...any)) *world {
	return &world{changed: make(chan struct{}), log: log}
}

// Lock implements sync.Locker.
func (w *world) Lock() { w.mu.Lock() }

// Unlock implements sync.Locker.
func (w *world) Unlock() { w.mu.Unlock() }

// logf reports what machines do.
func (w *world) logf(format string, args ...any) { w.log(format, args...) }

// next is closed with the next change. It must be locked.
func (w *world) next() <-chan struct{} { return w.changed }

// notify wakes everything that waits for a change. It must be locked.
func (w *world) notify() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// await returns nil as soon as cond holds. cond runs with the lock held and is asked again
// after every change.
func (w *world) await(ctx context.Context, cond func() bool) error {
	for {
		w.mu.Lock()
		ok, changed := cond(), w.changed
		w.mu.Unlock()

		if ok {
			return nil
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// update makes a change under the lock and wakes everything that waits for one.
func (w *world) update(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()

	change()
	w.notify()
}
