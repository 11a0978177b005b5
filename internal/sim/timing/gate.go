package timing

import (
	"context"
	"sync"
)

// Gate blocks a machine until a test lets it continue. The zero value and nil are open.
type Gate struct {
	mu      sync.Mutex
	opening chan struct{} // nil when the gate is open
}

// Shut blocks everything from now on. It may be called again.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()

	if g.opening == nil {
		g.opening = make(chan struct{})
	}
}

// Open unblocks everything. It may be called again.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()

	if g.opening != nil {
		close(g.opening)
		g.opening = nil
	}
}

// Pass returns when the gate is open, or with the error of ctx when that ends first.
func (g *Gate) Pass(ctx context.Context) error {
	if g == nil {
		return nil
	}

	g.mu.Lock()
	opening := g.opening
	g.mu.Unlock()

	if opening == nil {
		return nil
	}

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-opening:
		return nil
	}
}
