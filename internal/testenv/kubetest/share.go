package kubetest

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
)

// Share is something that all tests of a process share, such as a cluster, to save their starts.
type Share[T any] struct {
	mu    sync.Mutex
	value T
	end   func() error
	err   error
}

// Starter starts something with its files in a folder. The function it returns is never nil and ends all of it.
type Starter[T any] func(ctx context.Context, dir string, log func(string, ...any)) (T, func() error, error)

// Get returns what tests share; the first test that asks starts it. See [Require] for what it needs.
func (s *Share[T]) Get(t testing.TB, start Starter[T]) T {
	t.Helper()

	Require(t)

	s.mu.Lock()
	defer s.mu.Unlock()

	if s.end == nil {
		s.begin(context.WithoutCancel(t.Context()), start)
	}

	if s.err != nil {
		t.Fatalf("start what tests share: %v", s.err)
	}

	return s.value
}

func (s *Share[T]) begin(ctx context.Context, start Starter[T]) {
	dir, err := os.MkdirTemp("", "testenv-*")
	if err != nil {
		s.end, s.err = func() error { return nil }, err

		return
	}

	value, end, err := start(ctx, dir, func(string, ...any) {})
	s.value, s.err = value, err
	s.end = func() error { return errors.Join(end(), os.RemoveAll(dir)) }
}

// End ends it, if it was started.
func (s *Share[T]) End() error {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.end == nil {
		return nil
	}

	return s.end()
}
