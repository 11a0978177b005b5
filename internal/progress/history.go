package progress

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
)

// remembered is how many durations of a kind of step count, the last ones.
const remembered = 9

// history is how long steps took: those of this process, and those of earlier applies in the JSON file. The zero
// value knows none. Safe for concurrent use.
type history struct {
	mu   sync.Mutex
	read bool
	took map[string][]time.Duration
}

// usual is the median duration of finished steps of the same kind in full seconds; zero for none. The first call reads
// the file.
func (h *history) usual(path string, e lifecycle.Event) time.Duration {
	if e.State != lifecycle.StepStarted {
		return 0
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	h.load(path)

	took := slices.Sorted(slices.Values(h.took[kindOf(e.Step.String(), e.Machine)]))
	if len(took) == 0 {
		return 0
	}

	return took[len(took)/2].Round(time.Second)
}

// add remembers a finished step.
func (h *history) add(path string, e lifecycle.Event) {
	if e.State != lifecycle.StepFinished {
		return
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	h.load(path)
	h.put(e.Step.String(), e.Machine, e.Elapsed)
}

func (h *history) put(step, machine string, elapsed time.Duration) {
	kind := kindOf(step, machine)
	h.took[kind] = append(h.took[kind], elapsed)
	h.took[kind] = h.took[kind][max(len(h.took[kind])-remembered, 0):]
}

// load reads the file of earlier applies once. A file that cannot be read has no history: what writes it reports
// the error.
func (h *history) load(path string) {
	if h.read {
		return
	}

	h.read, h.took = true, map[string][]time.Duration{}

	file, err := os.Open(path)
	if err != nil {
		return
	}

	defer func() { _ = file.Close() }() // it was only read

	for lines := bufio.NewScanner(file); lines.Scan(); {
		var line Line
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.State == lifecycle.StepFinished {
			h.put(line.Step, line.Machine, time.Duration(line.Elapsed*float64(time.Second)))
		}
	}
}

// kindOf is what steps of one kind have in common: the text without the machine, the versions and the cost.
func kindOf(step, machine string) string {
	step, _, _ = strings.Cut(strings.ReplaceAll(step, machine, "*"), ": ")

	return step
}
