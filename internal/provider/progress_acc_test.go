package provider_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/progress"
	"github.com/talosop/terraform-provider-talosop/internal/provider/sitetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Progress is written to a file during an apply, and contains no secret; the plan reports a file that cannot be
// written.
func TestAccProgress_isWrittenDown(t *testing.T) {
	t.Parallel()

	s := sitetest.New(t, 1, 0)
	w := s.Quickstart(t, clitest.Any(t), map[string]any{"deletion_protection": false})
	follows := func(path, metrics string) {
		w.Write("progress_override.tf",
			fmt.Sprintf("provider \"talosop\" {\n  progress_file = %q\n  metrics_file = %q\n}\n", path, metrics))
	}

	follows("missing/progress.jsonl", "metrics.txt")

	refused := w.Run("plan")
	if refused.Exit != 1 {
		t.Errorf("exit %d:\n%s", refused.Exit, refused.Output())
	}

	sitetest.Says(t, refused, "missing/progress.jsonl")
	sitetest.Shows(t, refused, "invalid_progress_file")
	sitetest.Shows(t, refused, "invalid_metrics_file")

	follows("progress.jsonl", "metrics.prom")
	w.KeepTrace()
	w.MustRun("apply", "-auto-approve")

	bundle, _ := w.Attribute("talosop_secrets.this", "bundle").(string)
	if bundle == "" {
		t.Fatal("state has no secrets")
	}

	applied := w.Read("progress.jsonl.html")
	w.MustRun("destroy", "-auto-approve")

	destroyed := w.Read("progress.jsonl.html")
	for what, page := range map[string]string{"the apply": applied, "the destroy": destroyed} {
		for _, want := range []string{"The apply to cluster quickstart has finished", "cp-1", `http-equiv="refresh" content="30"`} {
			if !strings.Contains(page, want) {
				t.Errorf("after %s, %q is not in the page\n%s", what, want, page)
			}
		}
	}

	if !strings.Contains(applied, "bootstrap etcd on cp-1") || !strings.Contains(applied, "etcd leader") ||
		!strings.Contains(destroyed, "reset cp-1") {
		t.Errorf("the pages are\n%s\n%s", applied, destroyed)
	}

	text := w.Read("progress.jsonl")
	ended := map[string]lifecycle.EventState{}

	for line := range strings.Lines(text) {
		var read progress.Line
		if err := json.Unmarshal([]byte(line), &read); err != nil {
			t.Fatalf("%s: %v", line, err)
		}

		if read.Cluster != "quickstart" || read.Machine != "cp-1" && read.Machine != "" {
			t.Errorf("a line of another cluster or machine: %s", line)
		}

		if read.Step != "" {
			ended[read.Step] = read.State
		}
	}

	for _, step := range []string{"bootstrap etcd on cp-1", "reset cp-1"} {
		if got := stateOf(ended, step); got != lifecycle.StepFinished {
			t.Errorf("%s is %q in:\n%s", step, got, text)
		}
	}

	logged := slices.ContainsFunc(strings.Split(w.Trace(), "\n"), func(line string) bool {
		return strings.Contains(line, ": step finished: ") && strings.Contains(line, "@module=talosop.rollout") &&
			strings.Contains(line, `step="bootstrap etcd on cp-1"`) && strings.Contains(line, "machine=cp-1")
	})
	if !logged {
		t.Error("the log does not have the end of a step in the subsystem rollout")
	}

	people := w.Read("progress.jsonl.txt")
	if got, want := strings.Count(people, "\n"), strings.Count(text, "\n"); got != want {
		t.Errorf("%d lines for people, %d for programs", got, want)
	}

	for _, secret := range tf.MasksOf(bundle) {
		if strings.Contains(text+people+applied+destroyed, secret) {
			t.Errorf("a secret of %d characters was written down", len(secret))
		}
	}
}

// stateOf is how the step with this prefix ended.
func stateOf(ended map[string]lifecycle.EventState, step string) lifecycle.EventState {
	for text, state := range ended {
		if strings.HasPrefix(text, step) {
			return state
		}
	}

	return ""
}
