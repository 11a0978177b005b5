package lifecycle_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/talossim"
)

// TestBootstrapInFlightIsTheOnlyOne: the call takes longer than anybody's patience,
// and no other control plane is asked meanwhile.
func TestBootstrapInFlightIsTheOnlyOne(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0, talossim.Options{})
	s.policy.BootPatience = time.Millisecond

	observed := make(chan struct{})

	var reads, asked atomic.Int64

	var first atomic.Value // of string: the machine that was asked; which one depends on who boots first

	s.sim.SetOnCall(func(c talossim.Call) error {
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

// TestBootstrapWithoutAnAnswerIsNotGivenToAnother: the machine accepts the call and
// is never heard of again.
func TestBootstrapWithoutAnAnswerIsNotGivenToAnother(t *testing.T) {
	t.Parallel()

	s := newSite(t, 3, 0, talossim.Options{})
	s.policy.BootPatience = time.Millisecond
	s.sim.SetOnCall(func(c talossim.Call) error {
		if c.Method == "Bootstrap" {
			s.sim.Machine(c.Machine).SetFault(talossim.Fault{Count: -1, DropResponse: true})
		}

		return nil
	})

	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()

	if _, err := s.runner().Converge(ctx, s.want); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want a run that ran out of time", err)
	}

	first := s.sim.CallsTo("Bootstrap")[0].Machine
	for _, c := range s.sim.CallsTo("Bootstrap") {
		if c.Machine != first {
			t.Errorf("%s was asked to bootstrap after %s", c.Machine, first)
		}
	}
}
