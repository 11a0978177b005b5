package lifecycle_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// TestBootstrap_inFlightIsTheOnlyOne: the call takes longer than anybody waits,
// and no other control plane is asked meanwhile.
func TestBootstrap_inFlightIsTheOnlyOne(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0, sim.Options{})
	s.policy.BootTimeout = time.Millisecond

	observed := make(chan struct{})

	var reads, asked atomic.Int64

	var first atomic.Value // of string: the machine that was asked; which one depends on who boots first

	s.sim.SetOnCall(func(c sim.Call) error {
		switch {
		case c.Method == "Bootstrap":
			first.CompareAndSwap(nil, c.Machine)
			asked.Add(1)

			select {
			case <-observed:
			case <-t.Context().Done():
			}
		case asked.Load() > 0 && c.Machine != first.Load() && c.Method == "Version":
			// The loop came around several times while the call was on its way.
			if reads.Add(1) == 5 {
				close(observed)
			}
		}

		return nil
	})
	s.create()

	if n := asked.Load(); n != 1 {
		t.Errorf("%d machines were asked to bootstrap, want 1", n)
	}
}

// TestBootstrap_withoutAnAnswerIsNotGivenToAnother: the machine accepts the call and
// is never heard of again.
func TestBootstrap_withoutAnAnswerIsNotGivenToAnother(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0, sim.Options{})
	s.policy.BootTimeout = time.Millisecond

	var (
		first atomic.Value // of string: the machine that was asked
		reads atomic.Int64 // of the others since then
	)

	s.sim.SetOnCall(func(c sim.Call) error {
		switch asked := first.Load(); {
		case c.Method == "Bootstrap":
			first.CompareAndSwap(nil, c.Machine)
			s.sim.Machine(c.Machine).SetFault(sim.Fault{Count: -1, DropResponse: true})
		case asked != nil && c.Machine != asked && c.Method == "Version":
			reads.Add(1)
		}

		return nil
	})

	// Time enough for the loop to come around several times with nothing of it under way.
	_, err := s.convergeUntil(func(message string, fields map[string]any) bool {
		return message == "waiting" && fields["machine"] == first.Load() && reads.Load() > 20
	})
	if !errors.Is(err, errNoTimeLeft) {
		t.Errorf("error %v, want a run that ran out of time", err)
	}

	for _, c := range s.sim.CallsTo("Bootstrap") {
		if c.Machine != first.Load() {
			t.Errorf("%s was asked to bootstrap after %s", c.Machine, first.Load())
		}
	}
}
