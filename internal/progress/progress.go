package progress

import (
	"context"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

// Follower is who follows the runs of a process. The zero value follows none.
type Follower struct {
	// File is written to; nil for none.
	File *File
	// Spans are made for steps; nil for none.
	Spans *Spans
}

// Follow is one run that is followed. A run without an event leaves no trace. Safe for concurrent use.
type Follow struct {
	follower          Follower
	cluster, resource string
	failed            func(err error)
	now               func() time.Time
	// Log is told the same as the others; nil is allowed.
	Log func(e lifecycle.Event)

	mu sync.Mutex
	// waits is the last reason that each machine waits for, so that a line comes when it changes.
	waits map[string]string
	spans runSpans
	lost  bool
}

// Follow begins to follow a run on a cluster. failed is told, once, when it cannot be written down any more: that ends
// no run.
func (f Follower) Follow(cluster, resource string, failed func(err error)) *Follow {
	return &Follow{follower: f, cluster: cluster, resource: resource, failed: failed, now: time.Now,
		waits: map[string]string{}}
}

// NewFollower follows into a file, and into spans where the variables of OpenTelemetry are set. Both may be missing.
func NewFollower(path string, spans *Spans) Follower {
	f := Follower{Spans: spans}
	if path != "" {
		f.File = &File{path: path}
	}

	return f
}

// Tell takes note of what happens. What a machine waits for is noted when it changes.
func (f *Follow) Tell(e lifecycle.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.repeats(e) {
		return
	}

	if f.Log != nil {
		f.Log(e)
	}

	if f.follower.Spans != nil {
		f.spans.tell(f, e)
	}

	if f.follower.File == nil || f.lost {
		return
	}

	line := Line{Time: f.now().UTC(), Cluster: f.cluster, Resource: f.resource, Machine: e.Machine, State: e.State,
		Reason: e.Reason, Elapsed: e.Elapsed.Seconds()}
	if e.Step != nil {
		line.Step = e.Step.String()
	}

	if err := f.follower.File.add(line); err != nil {
		f.lost = true
		f.failed(err)
	}
}

// repeats reports whether an event says only that somebody still waits.
func (f *Follow) repeats(e lifecycle.Event) bool {
	if e.State != lifecycle.Waiting {
		delete(f.waits, e.Machine)

		return false
	}

	again := f.waits[e.Machine] == e.Reason
	f.waits[e.Machine] = e.Reason

	return again
}

// End ends what is open of the run; err is how it ended. Of a nil Follow, which nobody follows, nothing is. It takes a
// few seconds at most where spans have to be sent.
func (f *Follow) End(ctx context.Context, err error) {
	if f == nil {
		return
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	if f.follower.Spans != nil {
		f.spans.end(ctx, f.follower.Spans, err)
	}
}
