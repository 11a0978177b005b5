package talos

import (
	"errors"
	"testing"
	"time"
)

// The time of this side, such as of a slow store, does not count for the machine.
func TestPace_countsTheOtherSideOnly(t *testing.T) {
	t.Parallel()

	m := &Machine{fleet: &Fleet{options: Options{Timeouts: Timeouts{Stall: time.Hour}}}}

	ctx, pace := m.paced(t.Context())
	defer pace.stop()

	for range 2 {
		if pace.timer.Stop() {
			t.Error("it counts while no caller waits for the machine")
		}

		if err := pace.step(func() error {
			if !pace.timer.Reset(0) {
				t.Error("it does not count while the machine is waited for")
			}

			<-ctx.Done()

			return ctx.Err()
		}); err == nil {
			t.Error("a machine that says nothing is waited for")
		}
	}

	pace.stop()

	if !errors.Is(callError(ctx.Err()), ErrUnreachable) {
		t.Errorf("the stream ended with %v", ctx.Err())
	}
}
