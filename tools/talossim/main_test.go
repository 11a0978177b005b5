package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
)

func TestFaultFlags_areParsed(t *testing.T) {
	for text, want := range map[string]namedFault{
		"cp-2:Bootstrap:1:unavailable": {machine: "cp-2",
			fault: fault.Fault{Method: "Bootstrap", From: 1, Code: codes.Unavailable}},
		"cp-1:*:3:DEADLINE_EXCEEDED": {machine: "cp-1",
			fault: fault.Fault{Method: "*", From: 3, Code: codes.DeadlineExceeded}},
		"cp-1:Version:1:250ms": {machine: "cp-1",
			fault: fault.Fault{Method: "Version", From: 1, Latency: 250 * time.Millisecond}},
		"cp-1:Reset:1:drop":  {machine: "cp-1", fault: fault.Fault{Method: "Reset", From: 1, DropResponse: true}},
		"cp-1:Reset:1:cut":   {machine: "cp-1", fault: fault.Fault{Method: "Reset", From: 1, Cut: true}},
		"cp-1:Reset:1:crash": {machine: "cp-1", fault: fault.Fault{Method: "Reset", From: 1, Crash: true}},
		"cp-1:-:1:hang":      {machine: "cp-1", hang: true, fault: fault.Fault{Method: "-", From: 1}},
	} {
		got, err := parseFault(text)
		if err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(want, got, cmp.AllowUnexported(namedFault{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}

	for _, text := range []string{"", "cp-1:Bootstrap:unavailable", "cp-1:Bootstrap:0:cut", "cp-1:Bootstrap:1:soon"} {
		if _, err := parseFault(text); err == nil {
			t.Errorf("fault %q was accepted", text)
		}
	}
}

func TestVolumeFlags_areParsed(t *testing.T) {
	for text, want := range map[string]namedVolume{
		"worker-1:db:30s":     {machine: "worker-1", volume: kube.Volume{Name: "db", Linger: 30 * time.Second}},
		"worker-1:db:0s":      {machine: "worker-1", volume: kube.Volume{Name: "db"}},
		"worker-1:db:forever": {machine: "worker-1", volume: kube.Volume{Name: "db", Linger: -1}},
	} {
		if got, err := parseVolume(text); err != nil || got != want {
			t.Errorf("%s: got %+v, error %v", text, got, err)
		}
	}

	for _, text := range []string{"", "worker-1:db", "worker-1::30s", "worker-1:db:-1s", "worker-1:db:soon"} {
		if _, err := parseVolume(text); err == nil {
			t.Errorf("volume %q was accepted", text)
		}
	}
}

func TestImageFlags_areParsed(t *testing.T) {
	for text, want := range map[string]images.Image{
		"example.com:5000/installer:v1=missing":  {Missing: true},
		"example.com/installer:v1=unavailable":   {Unavailable: true},
		"example.com/installer:v1=install-fails": {InstallFails: true},
		"example.com/installer:v1=boot-fails":    {BootFails: true},
	} {
		got, err := parseImage(text)
		if err != nil {
			t.Fatal(err)
		}

		if reference, _, _ := strings.Cut(text, "="); got.reference != reference || got.image != want {
			t.Errorf("%s: got %+v", text, got)
		}
	}

	for _, text := range []string{"", "example.com/installer:v1", "example.com/installer:v1=broken"} {
		if _, err := parseImage(text); err == nil {
			t.Errorf("image %q was accepted", text)
		}
	}
}

// syncBuffer may be written by the command while the test reads it.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.b.String()
}

func TestRun_printsAddressesWritesVariablesAndStops(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	file := filepath.Join(t.TempDir(), "site.json")
	out := &syncBuffer{}
	done := make(chan error, 1)

	go func() {
		done <- run(ctx, []string{"-control-planes", "1", "-workers", "1", "-json", file}, strings.NewReader(""), out)
	}()

	variables := awaitFile(ctx, t, file)
	cancel()

	if err := <-done; err != nil {
		t.Fatalf("run: %v", err)
	}

	var got site
	if err := json.Unmarshal(variables, &got); err != nil {
		t.Fatal(err)
	}

	for _, want := range []string{
		"endpoint " + got.Endpoint + "\n",
		"cp-1 " + got.ControlPlanes["cp-1"] + ":50000\n",
		"worker-1 " + got.Workers["worker-1"] + ":50000\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
}

func awaitFile(ctx context.Context, t *testing.T, file string) []byte {
	t.Helper()

	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()

	for {
		if content, err := os.ReadFile(file); err == nil {
			return content
		}

		select {
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		case <-ticker.C:
		}
	}
}

// A user can switch a machine off and on, and give it an empty disk.
func TestConsole_changesMachines(t *testing.T) {
	simulator, err := sim.New(t.Context(), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := simulator.Close(); err != nil {
			t.Error(err)
		}
	})

	machines, err := simulator.AddMachines(t.Context(), "worker", 1, sim.MachineOptions{})
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		line, result string
		stage        sim.Stage
	}{
		{"off worker-1", "done", sim.StageUnknown},
		{"on worker-1", "done", sim.StageMaintenance},
		{"wipe worker-1", "done", sim.StageMaintenance},
		{"off worker-2", `machine "worker-2" does not exist`, sim.StageMaintenance},
		{"explode worker-1", "unknown command; commands are off, on and wipe, followed by the name of a machine",
			sim.StageMaintenance},
	} {
		out := &syncBuffer{}
		console(strings.NewReader(c.line+"\n"), simulator, &printer{out: out})

		if want := c.line + ": " + c.result + "\n"; out.String() != want {
			t.Errorf("prints %q, want %q", out, want)
		}

		if err := machines[0].AwaitStage(t.Context(), c.stage); err != nil {
			t.Errorf("after %s: %v", c.line, err)
		}
	}

	comment := &syncBuffer{}
	if console(strings.NewReader("# wipe worker-1\n"), simulator, &printer{out: comment}); comment.String() != "" {
		t.Errorf("prints %q about a comment", comment)
	}
}
