package factory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/image/schematic"
)

// Schematics reads the content of schematics, and remembers it. A factory that does not answer is not asked again, so
// that it delays a plan only once. Its methods are safe for concurrent use.
type Schematics struct {
	client *http.Client
	within time.Duration

	mu sync.Mutex
	// answers are those of factories, by their URL and the ID, and failed is why a factory gave none.
	answers map[[2]string]answer
	failed  map[string]error
}

// NewSchematics asks factories, each of which may take so long to answer.
func NewSchematics(client *http.Client, within time.Duration) *Schematics {
	return &Schematics{client: client, within: within, answers: map[[2]string]answer{}, failed: map[string]error{}}
}

type answer struct {
	content schematic.Schematic
	err     error
}

// Read is the content of a schematic in the factory at a URL. The ID is a hash of the content, so the factory need not
// be trusted.
func (s *Schematics) Read(ctx context.Context, base, id string) (schematic.Schematic, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	key := [2]string{base, id}
	if known, ok := s.answers[key]; ok {
		return known.content, known.err
	}

	if err := s.failed[base]; err != nil {
		return schematic.Schematic{}, err
	}

	limited, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()

	text, err := Client{Base: base, HTTP: s.client}.Schematic(limited, id)

	switch {
	case ctx.Err() != nil:
		return schematic.Schematic{}, context.Cause(ctx)
	case err != nil && !errors.Is(err, ErrNotFound):
		s.failed[base] = err

		return schematic.Schematic{}, err
	}

	var known answer
	if known.err = err; err == nil {
		known.content, known.err = verified(text, id)
	}

	s.answers[key] = known

	return known.content, known.err
}

// verified parses the content of a schematic, which has to have its ID.
func verified(text, id string) (schematic.Schematic, error) {
	if sum := sha256.Sum256([]byte(text)); hex.EncodeToString(sum[:]) != id {
		return schematic.Schematic{}, fmt.Errorf("read schematic %s: the response is another schematic, or none", id)
	}

	return schematic.Parse(text)
}
