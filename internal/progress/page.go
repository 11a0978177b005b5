package progress

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/health"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/statuspage"
)

// The page is written at most once in eventPace after an event, and once in roundPace after a round without one.
const (
	eventPace = time.Second
	roundPace = 5 * time.Second
)

// pageMode is that of the page.
const pageMode = 0o600

// Page is the status page of the runs of a process. Each version of the file replaces the one before, also that of
// another process. Safe for concurrent use.
type Page struct {
	path string
	now  func() time.Time

	mu sync.Mutex
	// runs are those that had an event or an observation, in this order.
	runs []*pageRun
	// written is when the page was last written, due when it is written next; zero for never.
	written, due time.Time
	timer        *time.Timer
	// writing makes each version replace an older one.
	writing sync.Mutex
	lost    bool
}

func newPage(path string) *Page { return &Page{path: path, now: time.Now} }

// pageRun is one run in the page. The mutex of the page guards it.
type pageRun struct {
	cluster, resource string
	failed            func(err error)

	began time.Time
	steps []statuspage.Step
	// reported are the machines that wait since the last observation, and waits those before it. waitsFor is why the
	// run itself waits; empty when it does not.
	reported, waits []statuspage.Wait
	waitsFor        string
	seen            bool
	want            cluster.Spec
	have            cluster.Snapshot
	// next lists the steps that the run starts next; nil at its end.
	next    func(most int) []step.Step
	ended   bool
	failure string
}

// begin puts a run into the page with its first event or observation.
func (p *Page) begin(r *pageRun) {
	if !slices.Contains(p.runs, r) {
		r.began = p.now()
		p.runs = append(p.runs, r)
	}
}

// tell adds an event of a run; usual is how long a started step usually takes.
func (p *Page) tell(r *pageRun, e lifecycle.Event, usual time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.begin(r)

	switch e.State {
	case lifecycle.StepStarted:
		r.waitsFor = ""
		r.steps = append(r.steps, statuspage.Step{Machine: e.Machine, Text: e.Step.String(), State: statuspage.Running,
			Began: p.now(), Usual: usual})
	case lifecycle.StepFinished, lifecycle.StepFailed:
		r.ends(e)
	case lifecycle.Waiting:
		if e.Machine == "" {
			r.waitsFor = e.Reason
		} else {
			r.reported = append(r.reported, statuspage.Wait{Machine: e.Machine, Reason: e.Reason})
		}

		return // the observation that follows shows it
	case lifecycle.Note:
		if i := r.running(e.Machine); i >= 0 {
			r.steps[i].Reason = e.Reason
		}
	}

	p.plan(eventPace)
}

// ends ends the running step of a machine.
func (r *pageRun) ends(e lifecycle.Event) {
	i := r.running(e.Machine)
	if i < 0 {
		return
	}

	s := &r.steps[i]
	s.State, s.Elapsed, s.Reason = statuspage.Finished, e.Elapsed, e.Reason

	if e.State == lifecycle.StepFailed {
		s.State = statuspage.Failed
	}
}

// running is the position of the running step of a machine; -1 for none.
func (r *pageRun) running(machine string) int {
	for i, s := range slices.Backward(r.steps) {
		if s.Machine == machine && s.State == statuspage.Running {
			return i
		}
	}

	return -1
}

// observed adds the end of a round of a run.
func (p *Page) observed(r *pageRun, want cluster.Spec, have cluster.Snapshot, next func(most int) []step.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.begin(r)

	pace := roundPace
	if !r.seen || !slices.Equal(r.waits, r.reported) {
		pace = eventPace
	}

	r.seen, r.want, r.have, r.next = true, want, have, next
	r.waits, r.reported = r.reported, nil

	p.plan(pace)
}

// end ends a run, and writes the page at once: the process may end next.
func (p *Page) end(r *pageRun, err error) {
	p.mu.Lock()

	if !slices.Contains(p.runs, r) {
		p.mu.Unlock()

		return
	}

	r.ended, r.waits, r.waitsFor, r.next = true, nil, "", nil
	if err != nil {
		r.failure = "see the error that the CLI shows"
	}

	p.mu.Unlock()

	p.write()
}

// plan plans the next version of the file, pace after the last one at the earliest.
func (p *Page) plan(pace time.Duration) {
	now := p.now()

	due := p.written.Add(pace)
	if due.Before(now) {
		due = now
	}

	if p.lost || p.timer != nil && !p.due.After(due) {
		return
	}

	if p.timer != nil {
		p.timer.Stop()
	}

	p.due = due
	p.timer = time.AfterFunc(due.Sub(now), p.write)
}

// write writes the file. An error ends the page, and the runs continue.
func (p *Page) write() {
	p.writing.Lock()
	defer p.writing.Unlock()

	p.mu.Lock()

	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}

	p.written = p.now()
	at, runs, failed, lost := p.written, p.copied(), p.runs[len(p.runs)-1].failed, p.lost

	p.mu.Unlock()

	if lost {
		return
	}

	if err := replace(p.path, pageOf(at, runs)); err != nil {
		p.mu.Lock()
		p.lost = true
		p.mu.Unlock()

		failed(fmt.Errorf("write the status page: %w", err))
	}
}

// replace gives a file the content of a page. Only its owner can read it, as the other files.
func replace(path string, page statuspage.Page) error {
	html, err := statuspage.HTML(page)
	if err != nil {
		return err
	}

	return replaceFile(path, html, pageMode)
}

// copied are the runs as they are now, which later events do not change.
func (p *Page) copied() []*pageRun {
	out := make([]*pageRun, len(p.runs))

	for i, r := range p.runs {
		run := *r
		run.steps = slices.Clone(r.steps)
		out[i] = &run
	}

	return out
}

// pageOf is the content of the page: one part for each cluster, in the order in which runs began.
func pageOf(at time.Time, runs []*pageRun) statuspage.Page {
	page := statuspage.Page{Time: at}

	var done []string

	for _, r := range runs {
		if slices.Contains(done, r.cluster) {
			continue
		}

		done = append(done, r.cluster)
		page.Clusters = append(page.Clusters, clusterOf(slices.DeleteFunc(slices.Clone(runs),
			func(other *pageRun) bool { return other.cluster != r.cluster })))
	}

	return page
}

// clusterOf is the cluster of runs: what they did, on the observation of the run that sees most of it.
func clusterOf(runs []*pageRun) statuspage.Cluster {
	o := statuspage.Observation{Name: runs[0].cluster}
	applied := statuspage.Run{Began: runs[0].began}

	best := runs[0]

	for _, r := range runs {
		applied.Resources = append(applied.Resources,
			statuspage.Resource{Name: r.resource, Ended: r.ended, Failure: r.failure})
		applied.Steps = append(applied.Steps, r.steps...)
		applied.Next = append(applied.Next, r.planned()...)
		applied.Waits = append(applied.Waits, r.waits...)

		if r.waitsFor != "" {
			applied.Waits = append(applied.Waits, statuspage.Wait{Reason: r.resource + " waits: " + r.waitsFor})
		}

		if r.seen {
			o.Machines = append(o.Machines, machinesOf(r)...)
		}

		if r.seen && (!best.seen || r.want.OwnsControlPlane() || !best.want.OwnsControlPlane()) {
			best = r
		}
	}

	slices.SortStableFunc(applied.Steps, func(a, b statuspage.Step) int { return a.Began.Compare(b.Began) })

	o.Endpoint, o.Kubernetes = best.want.Endpoint, best.want.Kubernetes.Version

	planes, have := best.want, best.have
	planes.Machines, planes.Removed = cluster.OfRole(best.want.Machines, step.ControlPlane), nil
	have.Kubernetes = newest(runs).Kubernetes
	o.Health = health.Of(planes, have, health.Expiry{})

	return statuspage.Applying(o, applied)
}

// mostNext is how many steps of a run the page lists before they start.
const mostNext = 40

// planned are the steps that did not start yet, in order. A step that runs stays next until the machine shows its
// effect. As in a plan, uncordons have no line.
func (r *pageRun) planned() []statuspage.Step {
	if r.next == nil {
		return nil
	}

	var out []statuspage.Step

	for _, next := range r.next(mostNext) {
		machine, text := next.On(), next.String()

		_, uncordons := next.(step.Uncordon)

		i := r.running(machine)
		if !uncordons && (i < 0 || kindOf(r.steps[i].Text, machine) != kindOf(text, machine)) {
			out = append(out, statuspage.Step{Machine: machine, Text: text})
		}
	}

	return out
}

// newest is the last observation of all runs: the nodes of the whole cluster are in each.
func newest(runs []*pageRun) cluster.Snapshot {
	return slices.MaxFunc(runs, func(a, b *pageRun) int { return a.have.Time.Compare(b.have.Time) }).have
}

// machinesOf are the machines of a run: those of its resource, and those that it removes.
func machinesOf(r *pageRun) []statuspage.Expected {
	var out []statuspage.Expected

	for _, m := range slices.Concat(r.want.Machines, r.want.Removed) {
		s := r.have.Machines[m.Name]
		out = append(out, statuspage.Expected{Name: m.Name, Node: cmp.Or(s.NodeName, m.NodeName), Address: m.Address,
			Pool: m.Pool, ControlPlane: m.Role == step.ControlPlane, Talos: m.TalosVersion, State: stateOf(s)})
	}

	return out
}

// stateOf is the state of a machine for people.
func stateOf(s step.MachineState) string {
	switch s.Access {
	case step.Member:
		if s.Stage == step.StageRunning {
			return "no Kubernetes node yet"
		}

		return string(s.Stage)
	case step.Maintenance:
		return "waits in maintenance mode"
	case step.Unreachable:
		return "does not respond"
	case step.Foreign, step.Gone, step.Unobserved:
	}

	return ""
}
