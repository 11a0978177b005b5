package timing

import "sync"

// Notifier notifies goroutines of changes. The zero value is ready.
type Notifier struct {
	mu   sync.Mutex
	rung chan struct{}
}

// Next is closed when the bell rings for the first time after the call.
func (b *Notifier) Next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.rung == nil {
		b.rung = make(chan struct{})
	}

	return b.rung
}

// Ring wakes everything that waits for the bell.
func (b *Notifier) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}
