package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recordPass records a scenario in the file that TALOSOP_E2E_RUNS names, if it passes.
func recordPass(t *testing.T, scenario, machines, talos, kubernetes string) {
	t.Helper()

	began := time.Now()

	t.Cleanup(func() {
		path := os.Getenv("TALOSOP_E2E_RUNS")
		if path == "" || t.Failed() || t.Skipped() {
			return
		}

		if err := recordRun(path, passed(scenario, machines, talos, kubernetes, began)); err != nil {
			t.Errorf("record the run: %v", err)
		}
	})
}

// A newer pass replaces that of the same scenario, machines and version only.
func TestRecordRun(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "runs.json")
	if err := os.WriteFile(path, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}

	old := Run{Scenario: "create", Machines: "pods", Talos: "v1.13.0", Passed: "2026-01-01", Seconds: 1}
	other := Run{Scenario: "create", Machines: "metal", Talos: "v1.13.0", Passed: "2026-01-02", Seconds: 2}
	newer := Run{Scenario: "create", Machines: "pods", Talos: "v1.13.0", Passed: "2026-01-03", Seconds: 3}

	for _, run := range []Run{old, other, newer} {
		if err := recordRun(path, run); err != nil {
			t.Fatal(err)
		}
	}

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	runs, err := parseRuns(text)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]Run{other, newer}, runs); diff != "" {
		t.Error(diff)
	}
}

// The committed runs are of scenarios that exist, each once, and sorted.
func TestRuns_areOfScenarios(t *testing.T) {
	t.Parallel()

	runs, err := Runs()
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(t.TempDir(), "runs.json")
	if err := os.WriteFile(path, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}

	known := map[string]bool{}
	for _, scenario := range scenarios {
		known[scenario.name] = true
	}

	for _, scenario := range hostedScenarios {
		known[scenario.name] = true
	}

	for _, run := range runs {
		if !known[run.Scenario] {
			t.Errorf("there is no scenario %q", run.Scenario)
		}

		if err := recordRun(path, run); err != nil {
			t.Fatal(err)
		}
	}

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(string(recorded), string(text)); diff != "" {
		t.Error(diff)
	}
}
