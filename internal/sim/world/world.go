package world

import (
	"context"
	"sync"
)

// World guards the model that the machines of a site share, and tells of its changes.
type World struct {
	mu      sync.Mutex
	changed chan struct{}
	log     func(format string, args ...any)
}

// NewWorld makes an empty one, which reports to log.
func NewWorld(log func(format string, args ...any)) *World {
	return &World{changed: make(chan struct{}), log: log}
}

// Lock implements sync.Locker.
func (w *World) Lock() { w.mu.Lock() }

// Unlock implements sync.Locker.
func (w *World) Unlock() { w.mu.Unlock() }

// Logf reports what machines do.
func (w *World) Logf(format string, args ...any) { w.log(format, args...) }

// Next is closed with the next change. It must be locked.
func (w *World) Next() <-chan struct{} { return w.changed }

// Notify wakes everything that waits for a change. It must be locked.
func (w *World) Notify() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// Await returns nil as soon as cond holds. cond runs with the lock held and is asked again
// after every change.
func (w *World) Await(ctx context.Context, cond func() bool) error {
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

// Update makes a change under the lock and wakes everything that waits for one.
func (w *World) Update(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()

	change()
	w.Notify()
}
