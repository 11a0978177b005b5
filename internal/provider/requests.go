package provider

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errCLIGone is the cause of requests that end because their CLI has ended.
var errCLIGone = errors.New("the CLI that started the provider has ended")

// Requests are the requests that the servers of this process work on. It is safe for concurrent use.
type Requests struct {
	mu      sync.Mutex
	running int
	// idle is closed when the last request ends; nil while no caller waits for that.
	idle chan struct{}

	stopped context.Context //nolint:containedctx // it ends all requests, which have their own contexts
	stop    context.CancelCauseFunc
}

// NewRequests returns an empty Requests.
func NewRequests() *Requests {
	r := &Requests{}
	r.stopped, r.stop = context.WithCancelCause(context.Background())

	return r
}

// begin counts a request until done is called. Its context ends with all requests, even after done, because a stream
// continues.
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

// EndWithCLI waits for the end of the CLI that started this process, and ends all requests. A CLI that is killed
// sends its providers no stop request, and go-plugin serves until it gets one (go-plugin 1.7, Serve).
func (r *Requests) EndWithCLI(grace time.Duration) {
	awaitParent(context.Background())
	r.endAll(grace)
}

// endAll cancels all requests. It returns once they have ended, or after the grace period in which they release what
// they hold.
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
