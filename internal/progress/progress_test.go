package progress_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/progress"
)

var bootstrap = step.Bootstrap{Machine: "cp-1"}

// reportRun is a run in which one machine waits in several rounds and one step fails once.
func reportRun(follow *progress.Follow) {
	for _, e := range []lifecycle.Event{
		{State: lifecycle.Waiting, Machine: "cp-1", Reason: "is booting"},
		{State: lifecycle.Waiting, Machine: "cp-1", Reason: "is booting"},
		{State: lifecycle.StepStarted, Machine: "cp-1", Step: bootstrap},
		{State: lifecycle.StepFailed, Machine: "cp-1", Step: bootstrap, Reason: "no\nanswer", Elapsed: 1500 * time.Millisecond},
		{State: lifecycle.Waiting, Machine: "cp-1", Reason: "is booting"},
		{State: lifecycle.StepStarted, Machine: "cp-1", Step: bootstrap},
		{State: lifecycle.Note, Machine: "cp-1", Reason: "draining node cp-1"},
		{State: lifecycle.StepFinished, Machine: "cp-1", Step: bootstrap, Elapsed: 62 * time.Second},
	} {
		follow.Tell(e)
	}
}

func follow(t *testing.T, f progress.Follower) *progress.Follow {
	t.Helper()

	return followed(t, f, func(err error) { t.Error(err) })
}

// followed follows a run until the test is over.
func followed(t *testing.T, f progress.Follower, failed func(error)) *progress.Follow {
	t.Helper()

	run := f.Follow("prod", "cluster", "cluster prod", failed)
	t.Cleanup(func() { run.End(context.WithoutCancel(t.Context()), nil) })

	return run
}

func lines(t *testing.T, path string) []string {
	t.Helper()

	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}

	defer file.Close()

	var out []string
	for s := bufio.NewScanner(file); s.Scan(); {
		out = append(out, s.Text())
	}

	return out
}

// Both files have one line for each event. A machine that still waits for the same reason has one line.
func TestFollow_writesLines(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "progress.jsonl")
	reportRun(follow(t, progress.NewFollower(path, "", nil)))

	var got []progress.Line

	for _, text := range lines(t, path) {
		var line progress.Line
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%s: %v", text, err)
		}

		if since := time.Since(line.Time); since < 0 || since > time.Minute {
			t.Errorf("the time of a line is %s", line.Time)
		}

		line.Time = time.Time{}
		got = append(got, line)
	}

	step := func(state lifecycle.EventState, reason string, elapsed float64) progress.Line {
		return progress.Line{Cluster: "prod", Resource: "cluster prod", Machine: "cp-1", Step: "bootstrap etcd on cp-1",
			State: state, Reason: reason, Elapsed: elapsed}
	}
	waits := progress.Line{Cluster: "prod", Resource: "cluster prod", Machine: "cp-1", State: lifecycle.Waiting,
		Reason: "is booting"}
	drains := progress.Line{Cluster: "prod", Resource: "cluster prod", Machine: "cp-1", State: lifecycle.Note,
		Reason: "draining node cp-1"}

	want := []progress.Line{
		waits, step(lifecycle.StepStarted, "", 0), step(lifecycle.StepFailed, "no\nanswer", 1.5), waits,
		step(lifecycle.StepStarted, "", 0), drains, step(lifecycle.StepFinished, "", 62),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	people := lines(t, path+".txt")
	if len(people) != len(want) || !strings.HasSuffix(people[2], " prod: bootstrap etcd on cp-1: failed after 2s: no answer") ||
		!strings.HasSuffix(people[5], " prod: draining node cp-1") ||
		!strings.HasSuffix(people[6], " prod: bootstrap etcd on cp-1: finished after 1m2s") {
		t.Errorf("people read:\n%s", strings.Join(people, "\n"))
	}

	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read %v, %v", info, err)
	}
}

// Concurrent runs of one process write whole lines.
func TestFollow_severalRuns(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "progress.jsonl")
	f := progress.NewFollower(path, "", nil)

	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { reportRun(follow(t, f)) })
	}

	all.Wait()

	written := lines(t, path)
	if len(written) != 8*7 {
		t.Errorf("%d lines, want those of all runs", len(written))
	}

	for _, line := range written {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

// A file that cannot be written any more is reported once, and the run continues.
func TestFollow_fileGoesAway(t *testing.T) {
	t.Parallel()

	folder := filepath.Join(t.TempDir(), "gone")
	failures := 0

	run := followed(t, progress.NewFollower(filepath.Join(folder, "progress.jsonl"), "", nil), func(error) { failures++ })
	reportRun(run)
	run.End(t.Context(), nil)

	if failures != 1 {
		t.Errorf("reported %d times", failures)
	}

	if err := progress.CheckFile(filepath.Join(folder, "progress.jsonl")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that does not exist is %v", err)
	}

	if err := progress.CheckFile(filepath.Dir(folder)); err == nil {
		t.Error("a folder is taken for a file")
	}
}

// Steps are spans of their run, which is part of the trace of the process that called Terraform.
func TestSpans_ofARun(t *testing.T) {
	var (
		mu  sync.Mutex
		got = map[string]string{}
		ids = map[string]string{}
	)

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)

		var request collector.ExportTraceServiceRequest
		if err = errors.Join(err, proto.Unmarshal(body, &request)); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL, err)
		}

		mu.Lock()
		defer mu.Unlock()

		for _, spans := range request.GetResourceSpans() {
			for _, scope := range spans.GetScopeSpans() {
				for _, span := range scope.GetSpans() {
					ids[string(span.GetSpanId())] = span.GetName()
					got[span.GetName()+" "+span.GetStatus().GetCode().String()] = string(span.GetParentSpanId())
				}
			}
		}

		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer server.Close()

	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")

	spans, err := progress.SpansFromEnvironment(t.Context(), "test")
	if err != nil || spans == nil {
		t.Fatalf("spans %v, %v", spans, err)
	}

	run := follow(t, progress.NewFollower("", "", spans))
	reportRun(run)
	run.End(t.Context(), errors.New("gave up"))

	mu.Lock()
	defer mu.Unlock()

	parents := map[string]string{}
	for name, parent := range got {
		parents[name] = ids[parent]
	}

	if diff := cmp.Diff(map[string]string{
		"cluster prod STATUS_CODE_ERROR": "", "bootstrap etcd on cp-1 STATUS_CODE_ERROR": "cluster prod",
		"bootstrap etcd on cp-1 STATUS_CODE_UNSET": "cluster prod",
	}, parents); diff != "" {
		t.Error(diff)
	}

	if parent := got["cluster prod STATUS_CODE_ERROR"]; parent != "\xb7\xad\x6b\x71\x69\x20\x33\x31" {
		t.Errorf("the run is part of %x", parent)
	}
}

// No spans are requested, or none that can be sent.
func TestSpans_fromEnvironment(t *testing.T) {
	for name, test := range map[string]struct {
		set  map[string]string
		want string
	}{
		"not set":      {nil, ""},
		"disabled":     {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}, ""},
		"disabled, 1":  {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "1"}, ""},
		"not a switch": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "yes"}, "OTEL_SDK_DISABLED"},
		"none":         {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, ""},
		"not exporter": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "zipkin"}, "zipkin"},
		"not protocol": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, "http/json"},
	} {
		t.Run(name, func(t *testing.T) {
			for name, value := range test.set {
				t.Setenv(name, value)
			}

			spans, err := progress.SpansFromEnvironment(t.Context(), "test")
			if spans != nil || (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("spans %v, %v; want none, and %q", spans, err, test.want)
			}
		})
	}
}

// A line names its machine once, also where the name has several words, or is a part of another name.
func TestLine_namesTheMachineOnce(t *testing.T) {
	t.Parallel()

	for machine, want := range map[string]string{
		"w-1 (replaced)": " prod: reset worker w-1 (replaced): started", "w": " prod: w: reset worker w-1 (replaced): started",
	} {
		line := progress.Line{Cluster: "prod", Machine: machine, Step: "reset worker w-1 (replaced)", State: lifecycle.StepStarted}
		if got := line.String(); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q", machine, got, want)
		}
	}
}
