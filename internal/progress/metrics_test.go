package progress_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/progress"
)

var sample = regexp.MustCompile(`(?m)^(talosop_apply_\w+)\{file="prod",cluster="(.*?)",resource="(.*?)",?(.*)\} (.*)$`)

// metricsIn are the samples of a metrics file, by the name of the metric and the values of its labels.
func metricsIn(t *testing.T, path string) map[string]string {
	t.Helper()

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	if !strings.HasSuffix(string(text), "\n# EOF\n") {
		t.Errorf("the end is missing in\n%s", text)
	}

	found := map[string]string{}

	for _, m := range sample.FindAllStringSubmatch(string(text), -1) {
		name := strings.TrimSpace(strings.TrimPrefix(m[1], "talosop_apply_") + " " + m[2] + "/" + m[3] + " " + m[4])
		if found[name] != "" {
			t.Errorf("%s is there twice", name)
		}

		found[name] = m[5]
	}

	return found
}

func hasMetrics(t *testing.T, path string, want map[string]string) map[string]string {
	t.Helper()

	got := metricsIn(t, path)
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q; all are %v", name, got[name], value, got)
		}
	}

	return got
}

// The file says that an apply runs, then what it did. The time of the last success outlasts a failure.
func TestMetrics_ofAnApply(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "prod.prom")
	if err := progress.CheckMetricsFile(path); err != nil {
		t.Fatal(err)
	}

	run := follow(t, progress.NewFollower("", path, nil))
	run.Tell(lifecycle.Event{State: lifecycle.Waiting, Machine: "cp-1", Reason: "is booting"})

	begun := hasMetrics(t, path, map[string]string{"running prod/cluster": "1.0", "success prod/cluster": "",
		"end_timestamp_seconds prod/cluster": "", "last_success_timestamp_seconds prod/cluster": "",
		"waiting prod/cluster": "1.0", `resources prod/cluster result="running"`: "1.0"})

	reportRun(run)
	run.Tell(lifecycle.Event{State: lifecycle.StepStarted, Machine: "w-1", Step: step.Reset{Machine: "w-1"}})
	run.End(t.Context(), nil)

	ended := hasMetrics(t, path, map[string]string{
		"running prod/cluster": "0.0", "success prod/cluster": "1.0", "waiting prod/cluster": "0.0",
		`steps prod/cluster kind="bootstrap",result="success"`:                  "1.0",
		`steps prod/cluster kind="bootstrap",result="failure"`:                  "1.0",
		`steps_duration_seconds prod/cluster kind="bootstrap",result="success"`: "62.0",
		`steps_duration_seconds prod/cluster kind="bootstrap",result="failure"`: "1.5",
		"disrupted_machines prod/cluster":                                       "1.0", "waits prod/cluster": "2.0",
		`resources prod/cluster result="success"`: "1.0", `resources prod/cluster result="running"`: "0.0",
		"start_timestamp_seconds prod/cluster": begun["start_timestamp_seconds prod/cluster"],
	})
	if ended["last_success_timestamp_seconds prod/cluster"] != ended["end_timestamp_seconds prod/cluster"] ||
		ended["duration_seconds prod/cluster"] == "" {
		t.Errorf("metrics are %v", ended)
	}

	again := follow(t, progress.NewFollower("", path, nil))
	again.End(t.Context(), errors.New("machine cp-1 does not respond"))

	hasMetrics(t, path, map[string]string{"success prod/cluster": "0.0", `resources prod/cluster result="failure"`: "1.0",
		`steps prod/cluster kind="bootstrap",result="success"`: "",
		"last_success_timestamp_seconds prod/cluster":          ended["last_success_timestamp_seconds prod/cluster"]})
}

// An apply in which one of several resources fails has failed, and its last success is that of an earlier apply.
func TestMetrics_ofSeveralResources(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "prod.prom")
	f := progress.NewFollower("", path, nil)
	first, second := f.Follow("prod", "worker", "worker w-1", nil), f.Follow("prod", "worker", "worker w-2", nil)

	reportRun(first)
	reportRun(second)
	first.End(t.Context(), nil)
	hasMetrics(t, path, map[string]string{"running prod/worker": "1.0", `resources prod/worker result="success"`: "1.0"})
	second.End(t.Context(), context.DeadlineExceeded)
	hasMetrics(t, path, map[string]string{"running prod/worker": "0.0", "success prod/worker": "0.0",
		`resources prod/worker result="success"`: "1.0", `resources prod/worker result="failure"`: "1.0",
		`steps prod/worker kind="bootstrap",result="success"`: "2.0", "last_success_timestamp_seconds prod/worker": ""})
}

// Several processes write one file, and none loses the samples of another.
func TestMetrics_ofSeveralProcesses(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "prod.prom")

	var group sync.WaitGroup

	for i := range 20 {
		run := progress.NewFollower("", path, nil).Follow(fmt.Sprintf("c%d", i), "cluster", "cluster",
			func(err error) { t.Error(err) })

		group.Go(func() {
			reportRun(run)
			run.End(t.Context(), nil)
		})
	}

	group.Wait()

	got := metricsIn(t, path)
	for i := range 20 {
		if got[fmt.Sprintf("success c%d/cluster", i)] != "1.0" {
			t.Errorf("cluster c%d is missing in %v", i, got)
		}
	}
}

// The collector, which runs as another user, can read the file.
func TestMetrics_canBeReadByTheCollector(t *testing.T) {
	t.Parallel()

	if runtime.GOOS == "windows" {
		t.Skip("Windows keeps no modes")
	}

	path := filepath.Join(t.TempDir(), "prod.prom")
	follow(t, progress.NewFollower("", path, nil)).End(t.Context(), nil)

	if info, err := os.Stat(path); err != nil || info.Mode() != 0o644 {
		t.Errorf("the file is %v, error %v", info, err)
	}
}

// A plan refuses a file that is not one of metrics, and an apply leaves it as it is.
func TestMetrics_keepsOtherFiles(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	victim := file("victim")

	for name, content := range map[string]string{"text.prom": "hello world\n", "other.prom": "node_load1 1\n",
		"victim": "old"} {
		if err := os.WriteFile(file(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for link, target := range map[string]string{"link.prom": victim, "locked.prom.lock": file("new")} {
		if err := os.Symlink(target, file(link)); err != nil {
			t.Fatal(err)
		}
	}

	for _, name := range []string{"text.prom", "other.prom", "link.prom", "locked.prom", "missing/a.prom", "victim/a.prom"} {
		failures := 0
		run := followed(t, progress.NewFollower("", file(name), nil), func(error) { failures++ })
		run.Tell(lifecycle.Event{State: lifecycle.Note, Reason: "begins"})

		if err := progress.CheckMetricsFile(file(name)); err == nil || failures != 1 {
			t.Errorf("%s: %d failures, the check says %v", name, failures, err)
		}
	}

	if err := progress.CheckMetricsFile(file("metrics.txt")); err == nil {
		t.Error("a file that the collector does not read is accepted")
	}

	for name, content := range map[string]string{"text.prom": "hello world\n", "victim": "old"} {
		if got, err := os.ReadFile(file(name)); err != nil || string(got) != content {
			t.Errorf("%s is %q, error %v", name, got, err)
		}
	}

	if _, err := os.Stat(file("new")); err == nil {
		t.Error("a lock was made through a link")
	}

}
