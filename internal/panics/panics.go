// Package panics turns a panic into an error, also that of a goroutine, which otherwise ends the process. A
// provider that crashed has stored no state of its changes. The error names functions and a type, and no value,
// because the value of a panic may be a secret.
package panics

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Error is a panic.
type Error struct {
	// Type of the value, such as runtime.boundsError.
	Type string
	// Functions that were running, the innermost first.
	Functions []string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("an internal error (%s), in %s", e.Type, strings.Join(e.Functions, " < "))
}

// Do calls work and gives back its error, or its panic as an [*Error].
func Do(work func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = of(value)
		}
	}()

	return work()
}

// Call is [Do] for work that returns nothing.
func Call(work func()) error {
	return Do(func() error {
		work()

		return nil
	})
}

// Within is [Do] for work that knows no context: it returns when its context ends, with the cause of that. What the
// work makes after that is given to drop.
func Within[T any](ctx context.Context, work func() (T, error), drop func(T)) (T, error) {
	type outcome struct {
		made T
		err  error
	}

	done := make(chan outcome)

	go func() {
		var made T

		err := Do(func() (err error) {
			made, err = work()

			return err
		})

		select {
		case done <- outcome{made, err}:
		case <-ctx.Done():
			if err == nil {
				drop(made)
			}
		}
	}()

	select {
	case o := <-done:
		return o.made, o.err
	case <-ctx.Done():
		var none T

		return none, context.Cause(ctx)
	}
}

// mostFunctions is how many are named.
const mostFunctions = 24

// of makes an error of what was recovered. That of a group says where it happened, and stays.
func of(value any) *Error {
	if err, is := value.(error); is {
		if e := (*Error)(nil); errors.As(err, &e) {
			return e
		}
	}

	counters := make([]uintptr, 128)
	frames := runtime.CallersFrames(counters[:runtime.Callers(1, counters)])

	// Frames above the panic recover it.
	var functions []string

	for {
		frame, more := frames.Next()

		switch name := frame.Function[strings.LastIndex(frame.Function, "/")+1:]; {
		case name == "runtime.gopanic":
			functions = nil
		case strings.HasPrefix(name, "runtime."):
		default:
			functions = append(functions, name)
		}

		if !more {
			return &Error{Type: fmt.Sprintf("%T", value), Functions: slices.Clip(functions[:min(len(functions), mostFunctions)])}
		}
	}
}

// Group is an errgroup that passes its panics to the goroutine that waits for it. The zero value is ready.
type Group struct {
	// group is nil before the first use of a zero value.
	group *errgroup.Group

	once     sync.Once
	panicked error
}

// WithContext makes a group with a context that ends with its first error or panic.
func WithContext(ctx context.Context) (*Group, context.Context) {
	group, ctx := errgroup.WithContext(ctx)

	return &Group{group: group}, ctx
}

// SetLimit is that of an errgroup.
func (g *Group) SetLimit(n int) { g.begun().SetLimit(n) }

func (g *Group) begun() *errgroup.Group {
	if g.group == nil {
		g.group = &errgroup.Group{}
	}

	return g.group
}

// Go runs work concurrently.
func (g *Group) Go(work func() error) {
	g.begun().Go(func() error {
		err := Do(work)
		if e := (*Error)(nil); errors.As(err, &e) {
			g.once.Do(func() { g.panicked = e })
		}

		return err
	})
}

// Wait returns the first error when all is done. It panics when one of those who did it has.
func (g *Group) Wait() error {
	err := g.begun().Wait()
	if g.panicked != nil {
		panic(g.panicked)
	}

	return err
}
