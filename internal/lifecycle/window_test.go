package lifecycle_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/lifecycle"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// Outside the maintenance window, a run waits with disruptive steps until it opens. A run that may not wait ends with
// a refusal, and nothing was disrupted.
func TestConverge_outsideOfTheWindow(t *testing.T) {
	t.Parallel()

	s := newSite(t, 1, 1, sim.Options{})
	s.create()
	s.upgrade(newerTalos)

	runner := s.runner()
	runner.Window = func(time.Time, time.Time) cluster.Window { return cluster.Window{Closed: true, Refuses: true} }

	var refused *lifecycle.RefusedError
	if _, err := runner.Converge(bounded(t), s.want); !errors.As(err, &refused) {
		t.Fatalf("the run ended with %v", err)
	}

	if got := s.rebooted(); len(got) > 0 {
		t.Errorf("%v rebooted outside of the window", got)
	}

	var waits atomic.Bool

	runner = s.runnerThatReports(&waits, "waits for the maintenance window")
	runner.Window = func(now, ends time.Time) cluster.Window {
		if now.IsZero() || ends.IsZero() {
			t.Errorf("the window is asked for at %s, in a run that ends at %s", now, ends)
		}

		return cluster.Window{Closed: !waits.Load(), Opens: now.Add(time.Second)}
	}

	if _, err := runner.Converge(bounded(t), s.want); err != nil {
		t.Fatal(err)
	}

	if !waits.Load() {
		t.Error("the run did not wait for the window")
	}

	s.runsEverywhere(newerTalos)
	s.schedulable()
}
