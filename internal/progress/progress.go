package progress

import (
	"context"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

// Follower follows the runs of a process. The zero value follows none.
type Follower struct {
	// File receives the lines, and Page shows the runs of the process; nil for none.
	File *File
	Page *Page
	// Metrics has the results of the runs; nil for none.
	Metrics *Metrics
	// Spans are created for steps; nil for none.
	Spans *Spans
}

// Follow follows one run. A run without an event leaves no trace. Safe for concurrent use.
type Follow struct {
	follower          Follower
	cluster, resource string
	failed            func(err error)
	now               func() time.Time
	// Log receives the same events; nil is allowed.
	Log func(e lifecycle.Event)

	mu sync.Mutex
	// waits is the last reason why each machine waits. A changed reason writes a line.
	waits map[string]string
	spans runSpans
	lost  bool
	// run is the part of the run in the page, and measured that in the metrics; nil without them.
	run      *pageRun
	measured *metricsRun
}

// Follow begins to follow a run on a cluster. kind is that of its resource, without names. When a file cannot be
// written any more, it calls failed once and the run continues.
func (f Follower) Follow(name, kind, resource string, failed func(err error)) *Follow {
	var once sync.Once

	follow := &Follow{follower: f, cluster: name, resource: resource, now: time.Now, waits: map[string]string{},
		failed: func(err error) { once.Do(func() { failed(err) }) }}
	if f.Page != nil {
		follow.run = &pageRun{cluster: name, resource: resource, failed: follow.failed}
	}

	if f.Metrics != nil {
		follow.measured = &metricsRun{cluster: name, kind: kind, resource: resource}
	}

	return follow
}

// NewFollower follows into a file with a page beside it, into a file with metrics, and into spans where the
// OpenTelemetry variables are set. All are optional.
func NewFollower(path, metrics string, spans *Spans) Follower {
	f := Follower{Spans: spans}
	if path != "" {
		f.File, f.Page = &File{path: path}, newPage(path+asPage)
	}

	if metrics != "" {
		f.Metrics = newMetrics(metrics)
	}

	return f
}

// Tell records an event. The reason why a machine waits is recorded when it changes.
func (f *Follow) Tell(e lifecycle.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()

	var usual time.Duration

	if file := f.follower.File; file != nil {
		usual = file.history.usual(file.path, e)
		file.history.add(file.path, e)
	}

	if f.run != nil {
		f.follower.Page.tell(f.run, e, usual)
	}

	f.measure(func(m *Metrics) error { return m.tell(f.measured, e) })

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
		Reason: e.Reason, Elapsed: e.Elapsed.Seconds(), Usual: usual.Seconds()}
	if e.Step != nil {
		line.Step = e.Step.String()
	}

	if err := f.follower.File.add(line); err != nil {
		f.lost = true
		f.failed(err)
	}
}

// measure changes the metrics, if there are any.
func (f *Follow) measure(change func(m *Metrics) error) {
	if f.measured == nil {
		return
	}

	if err := change(f.follower.Metrics); err != nil {
		f.failed(err)
	}
}

// repeats reports whether an event only says that a machine still waits for the same reason.
func (f *Follow) repeats(e lifecycle.Event) bool {
	if e.State != lifecycle.Waiting {
		delete(f.waits, e.Machine)

		return false
	}

	again := f.waits[e.Machine] == e.Reason
	f.waits[e.Machine] = e.Reason

	return again
}

// End ends the open steps of the run, and writes the page and the metrics; err is the result of the run. A nil Follow
// has none. Sending spans takes a few seconds at most.
func (f *Follow) End(ctx context.Context, err error) {
	if f == nil {
		return
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	if f.run != nil {
		f.follower.Page.end(f.run, err)
	}

	f.measure(func(m *Metrics) error { return m.end(f.measured, err) })

	if f.follower.Spans != nil {
		f.spans.end(ctx, f.follower.Spans, err)
	}
}

// Observed shows an observation of the run in the page. next lists what the run does next; nil at its end.
func (f *Follow) Observed(want cluster.Spec, have cluster.Snapshot, next func(most int) []step.Step) {
	if f.run != nil {
		f.follower.Page.observed(f.run, want, have, next)
	}

	f.measure(func(m *Metrics) error { return m.observed(f.measured) })
}
