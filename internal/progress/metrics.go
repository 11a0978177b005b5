package progress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/openmetrics"
	"github.com/talosop/terraform-provider-talosop/internal/safefile"
)

const (
	// asMetrics is the only suffix that the textfile collector of node_exporter reads.
	asMetrics = ".prom"
	// asLock is the suffix of the file beside it that processes lock.
	asLock = ".lock"
	// metricsMode lets the collector read the file, which runs as another user.
	metricsMode = 0o644
	// metricsPace is how often a running apply writes the file, and lockTime how long a process waits for another one.
	metricsPace = 5 * time.Second
	lockTime    = 5 * time.Second
	lockPace    = 20 * time.Millisecond
)

// Metrics is a file with the metrics of the last apply to each cluster. Several processes may share it: each replaces
// its own samples. Safe for concurrent use.
type Metrics struct {
	path string
	now  func() time.Time

	mu sync.Mutex
	// applies are those of this process, in the order in which they began.
	applies []*apply
	written time.Time
}

func newMetrics(path string) *Metrics { return &Metrics{path: path, now: time.Now} }

// apply is what the runs of a process do to one kind of resource of a cluster. The mutex of the metrics guards it.
type apply struct {
	cluster, kind string

	began, ended               time.Time
	running, succeeded, failed int
	steps                      map[stepResult]stepSum
	disrupted                  map[string]bool
	// waiting are the reasons of the last round by resource and machine, and waits counts those that changed.
	waiting map[[2]string]string
	waits   int
	// before is the last success of earlier applies, once begun is true.
	before []openmetrics.Sample
	begun  bool
}

// stepResult is a kind of step, and whether it succeeded.
type stepResult struct{ kind, result string }

// stepSum is how many steps there were, and how long they took together.
type stepSum struct {
	count   int
	elapsed time.Duration
}

const (
	success = "success"
	failure = "failure"
)

// metricsRun is one run in the metrics.
type metricsRun struct {
	cluster, kind, resource string
	apply                   *apply
}

// CheckMetricsFile reports why a file at this path cannot have the metrics. It creates nothing.
func CheckMetricsFile(path string) error {
	if !strings.HasSuffix(path, asMetrics) {
		return fmt.Errorf("the name does not end with %s", asMetrics)
	}

	switch folder, err := os.Stat(filepath.Dir(path)); {
	case err != nil:
		return err
	case !folder.IsDir():
		return fmt.Errorf("%s is not a directory", filepath.Dir(path))
	}

	if err := errors.Join(safefile.CheckAppend(path), safefile.CheckAppend(path+asLock)); err != nil {
		return err
	}

	_, err := readMetrics(path)

	return err
}

// begin adds a run with its first event.
func (m *Metrics) begin(r *metricsRun) {
	if r.apply != nil {
		return
	}

	i := slices.IndexFunc(m.applies, func(a *apply) bool { return a.cluster == r.cluster && a.kind == r.kind })
	if i < 0 {
		i = len(m.applies)
		m.applies = append(m.applies, &apply{cluster: r.cluster, kind: r.kind, began: m.now(),
			steps: map[stepResult]stepSum{}, disrupted: map[string]bool{}, waiting: map[[2]string]string{}})
		m.written = time.Time{}
	}

	r.apply = m.applies[i]
	r.apply.running++
}

// tell adds an event of a run.
func (m *Metrics) tell(r *metricsRun, e lifecycle.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	m.begin(r)
	r.apply.tell(r.resource, e)

	return m.write(metricsPace)
}

func (a *apply) tell(resource string, e lifecycle.Event) {
	on := [2]string{resource, e.Machine}

	if e.State == lifecycle.Waiting {
		if a.waiting[on] != e.Reason {
			a.waits++
		}

		a.waiting[on] = e.Reason

		return
	}

	delete(a.waiting, on)

	switch e.State {
	case lifecycle.StepStarted:
		if i := e.Step.Impact(); i.Drains || i.Reboots || i.Wipes || i.ReplacesPod {
			a.disrupted[e.Machine] = true
		}
	case lifecycle.StepFinished:
		a.add(e, success)
	case lifecycle.StepFailed:
		a.add(e, failure)
	case lifecycle.Note, lifecycle.Waiting:
	}
}

func (a *apply) add(e lifecycle.Event, result string) {
	of := stepResult{kind: kindName(e.Step), result: result}
	sum := a.steps[of]
	a.steps[of] = stepSum{count: sum.count + 1, elapsed: sum.elapsed + e.Elapsed}
}

// observed says that a run goes on.
func (m *Metrics) observed(r *metricsRun) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	m.begin(r)

	return m.write(metricsPace)
}

// end ends a run with its result, and writes the file at once: the process may end next.
func (m *Metrics) end(r *metricsRun, err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	m.begin(r)

	a := r.apply
	a.running--
	a.ended = m.now()

	for on := range a.waiting {
		if on[0] == r.resource {
			delete(a.waiting, on)
		}
	}

	if err != nil {
		a.failed++
	} else {
		a.succeeded++
	}

	return m.write(0)
}

// write writes the file, pace after the last time at the earliest.
func (m *Metrics) write(pace time.Duration) error {
	now := m.now()
	if now.Sub(m.written) < pace {
		return nil
	}

	m.written = now

	if err := m.replace(now); err != nil {
		return fmt.Errorf("write the metrics: %w", err)
	}

	return nil
}

// replace gives the file the samples of this process beside those of others.
func (m *Metrics) replace(now time.Time) (err error) {
	if err := safefile.CheckAppend(m.path + asLock); err != nil {
		return err
	}

	lock := flock.New(m.path+asLock, flock.SetPermissions(metricsMode))

	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()

	if _, err := lock.TryLockContext(ctx, lockPace); err != nil {
		return fmt.Errorf("lock %s: %w", m.path+asLock, err)
	}

	defer func() { err = errors.Join(err, lock.Close()) }()

	families, err := readMetrics(m.path)
	if err != nil {
		return err
	}

	for i := range families {
		m.put(&families[i], now)
	}

	text, err := openmetrics.Text(families)
	if err != nil {
		return err
	}

	return replaceFile(m.path, text, metricsMode)
}

// put replaces the samples of this process. Without a success of its own, the time of the last one stays.
func (m *Metrics) put(f *openmetrics.Family, now time.Time) {
	file := strings.TrimSuffix(filepath.Base(m.path), asMetrics)

	for _, a := range m.applies {
		key := []string{file, a.cluster, a.kind}
		own := func(s openmetrics.Sample) bool { return slices.Equal(s.Labels[:len(key)], key) }
		values := applyMetrics[f.Name].values(a, now)

		if f.Name == lastSuccess {
			values = a.lastSuccess(f.Samples, own, values)
		}

		f.Samples = slices.DeleteFunc(f.Samples, own)

		for _, v := range values {
			f.Add(v.Value, append(slices.Clone(key), v.Labels...)...)
		}
	}
}

// lastSuccess is the time of its success, or of the last one before it in the file.
func (a *apply) lastSuccess(
	samples []openmetrics.Sample, own func(openmetrics.Sample) bool, success []openmetrics.Sample,
) []openmetrics.Sample {
	if !a.begun {
		a.begun = true

		if i := slices.IndexFunc(samples, own); i >= 0 {
			a.before = []openmetrics.Sample{{Value: samples[i].Value}}
		}
	}

	if success == nil {
		return a.before
	}

	return success
}

// readMetrics are the families with the samples in a file; without any where there is no file.
func readMetrics(path string) ([]openmetrics.Family, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}

	families, err := openmetrics.Samples(string(text), applyFamilies())
	if err != nil {
		return nil, fmt.Errorf("the file has other content: %w", err)
	}

	return families, nil
}

// replaceFile gives a file a content and a mode. A folder that was removed during the apply stays away.
func replaceFile(path, content string, mode fs.FileMode) (err error) {
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return err
	}

	file, err := safefile.Create(path)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, file.Discard()) }()

	if _, err := io.WriteString(file, content); err != nil {
		return err
	}

	if err := file.Chmod(mode); err != nil {
		return err
	}

	_, err = file.Replace()

	return err
}
