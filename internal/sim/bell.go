package sim

import "sync"

// bell tells goroutines that something changed. The zero value is ready.
type bell struct {
	mu   sync.Mutex
	rung chan struct{}
}

// next is closed when the bell rings for the first time after the call.
func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.rung == nil {
		b.rung = make(chan struct{})
	}

	return b.rung
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}
