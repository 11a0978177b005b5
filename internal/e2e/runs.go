package e2e

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// Run is a scenario that passed on real Talos.
type Run struct {
	// Scenario is its name, and Machines what it ran on: metal, containers or pods.
	Scenario, Machines string
	// Talos and Kubernetes are the versions that its cluster began with.
	Talos, Kubernetes string
	// Passed is the day of its newest pass, such as 2026-11-29.
	Passed  string
	Seconds int
}

// place is what a newer run replaces.
func (r Run) place() [3]string { return [3]string{r.Scenario, r.Machines, r.Talos} }

//go:embed testdata/runs.json
var recorded []byte

// Runs are the newest passes of all scenarios, sorted by name, machines and version.
func Runs() ([]Run, error) { return parseRuns(recorded) }

func parseRuns(text []byte) (runs []Run, err error) {
	if err := json.Unmarshal(text, &runs); err != nil {
		return nil, fmt.Errorf("read runs of scenarios: %w", err)
	}

	return runs, nil
}

// recordRun replaces the newest pass of a scenario in a file in the form of testdata/runs.json.
func recordRun(path string, run Run) error {
	text, err := os.ReadFile(path) //nolint:gosec // the developer's file
	if err != nil {
		return err
	}

	runs, err := parseRuns(text)
	if err != nil {
		return err
	}

	runs = slices.DeleteFunc(runs, func(other Run) bool { return other.place() == run.place() })
	runs = append(runs, run)
	slices.SortFunc(runs, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.Scenario, b.Scenario), cmp.Compare(a.Machines, b.Machines), cmp.Compare(a.Talos, b.Talos))
	})

	text, err = json.MarshalIndent(runs, "", "  ")
	if err != nil {
		return err
	}

	return os.WriteFile(path, append(text, '\n'), 0o644) //nolint:gosec // a file of the repository
}

// passed is the pass of a scenario that began at a time and ends now.
func passed(scenario, machines, talos, kubernetes string, began time.Time) Run {
	return Run{Scenario: scenario, Machines: machines, Talos: talos, Kubernetes: kubernetes,
		Passed: time.Now().UTC().Format(time.DateOnly), Seconds: int(time.Since(began).Seconds())}
}
