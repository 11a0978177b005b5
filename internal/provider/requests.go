package provider

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errCLIGone is why requests end whose CLI has ended.
var errCLIGone = errors.New("the CLI that started the provider has ended")

// Requests are those that the servers of this process work on. It is safe for concurrent use.
type Requests struct {
	mu      sync.Mutex
	running int
	// idle is closed when the last request ends; nil until something waits for that.
	idle chan struct{}

	stopped context.Context //nolint:containedctx // it is the end of all requests, which come with their own contexts
	stop    context.CancelCauseFunc
}

// NewRequests has none.
func NewRequests() *Requests {
	r := &Requests{}
	r.stopped, r.stop = context.WithCancelCause(context.Background())

	return r
}

// begin counts a request until done is called. Its context ends with all requests, also after done: a stream goes on.
func (r *Requests) begin(ctx context.Context) (bound context.Context, done func()) {
	if r == nil {
		return ctx, func() {}
	}

	r.mu.Lock()
	r.running++
	r.mu.Unlock()

	bound, cancel := context.WithCancelCause(ctx)
	release := context.AfterFunc(r.stopped, func() { cancel(context.Cause(r.stopped)) })
	context.AfterFunc(ctx, func() { release() })

	return bound, r.end
}

func (r *Requests) end() {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.running--

	if r.running == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// EndWithCLI waits for the end of the CLI that started this process, and ends all requests. A CLI that is killed asks
// its providers for nothing any more, and go-plugin serves until it is asked to stop (go-plugin 1.7, Serve).
func (r *Requests) EndWithCLI(grace time.Duration) {
	awaitParent(context.Background())
	r.endAll(grace)
}

// endAll cancels all requests, and returns once they have ended, or after the grace period that they have to release
// what they hold.
func (r *Requests) endAll(grace time.Duration) {
	r.stop(errCLIGone)

	r.mu.Lock()
	if r.running == 0 {
		r.mu.Unlock()

		return
	}

	if r.idle == nil {
		r.idle = make(chan struct{})
	}

	idle := r.idle
	r.mu.Unlock()

	timer := time.NewTimer(grace)
	defer timer.Stop()

	select {
	case <-idle:
	case <-timer.C:
	}
}
