package client

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
)

// defaultSlots is how many sessions work at a time by default.
const defaultSlots = 3

// Slots bound how many sessions of a process render and build at a time, which takes some hundred MiB for a large
// chart. They also hold the data that sessions share. Safe for concurrent use.
type Slots struct {
	taken chan struct{}

	mu sync.Mutex
	// catalogs are the lists of kinds that servers gave, see revalidating.
	catalogs map[string]catalog
}

// catalog is an answer of a server that it gave a tag.
type catalog struct {
	tag    string
	header http.Header
	body   []byte
}

// NewSlots makes n of them, 3 for 0.
func NewSlots(n int) *Slots {
	n = cmp.Or(n, defaultSlots)

	return &Slots{taken: make(chan struct{}, n), catalogs: map[string]catalog{}}
}

func (s *Slots) take(ctx context.Context) error {
	if ctx.Err() == nil {
		select {
		case s.taken <- struct{}{}:
			return nil
		case <-ctx.Done():
		}
	}

	return fmt.Errorf("wait for other addons: %w", context.Cause(ctx))
}

func (s *Slots) release() { <-s.taken }

func (s *Slots) catalog(key string) (catalog, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	c, known := s.catalogs[key]

	return c, known
}

func (s *Slots) keep(key string, c catalog) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.catalogs[key] = c
}

// place is the slot of one session.
type place struct {
	slots *Slots

	mu   sync.Mutex
	held bool
}

// during does work with a slot. Within it, another during takes none.
func (p *place) during(ctx context.Context, work func() error) error {
	if p.holds() {
		return work()
	}

	if err := p.take(ctx); err != nil {
		return err
	}

	defer p.leave()

	return work()
}

// without does a wait while others have the slot, if there is one. It is taken again
// afterwards, unless ctx ended: what is left then is to record so, which takes no memory.
func (p *place) without(ctx context.Context, wait func() error) error {
	if !p.leave() {
		return wait()
	}

	err := wait()
	if taken := p.take(ctx); err == nil {
		err = taken
	}

	return err
}

func (p *place) holds() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.held
}

func (p *place) take(ctx context.Context) error {
	if err := p.slots.take(ctx); err != nil {
		return err
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	p.held = true

	return nil
}

// leave reports whether there was a slot to release.
func (p *place) leave() bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	if !p.held {
		return false
	}

	p.held = false
	p.slots.release()

	return true
}
