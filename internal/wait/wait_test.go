package wait_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

var errNotYet = errors.New("etcd has 2 of 3 members")

func TestPermanent_isRecognized(t *testing.T) {
	t.Parallel()

	if wait.Permanent(nil) != nil {
		t.Error("Permanent(nil) is an error")
	}

	if wait.IsPermanent(nil) || wait.IsPermanent(errNotYet) {
		t.Error("an ordinary error counts as permanent")
	}

	err := wait.Permanent(errNotYet)
	if !wait.IsPermanent(err) || !wait.IsPermanent(fmt.Errorf("apply: %w", err)) {
		t.Error("a permanent error does not count as one")
	}

	if !errors.Is(err, errNotYet) || err.Error() != errNotYet.Error() {
		t.Errorf("Permanent changed the error: %v", err)
	}
}

func TestUntil_returnsAtOnceWhenMet(t *testing.T) {
	t.Parallel()

	calls := 0

	// An hour between two calls: the first must not wait for it.
	err := wait.Until(t.Context(), time.Hour, func(context.Context) error {
		calls++

		return nil
	})
	if err != nil || calls != 1 {
		t.Errorf("err = %v after %d calls, want nil after 1", err, calls)
	}
}

// What is there at once is seen at once, and what takes its time is asked for less often.
func TestBackoff_doublesUpToTheLongest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var (
			began = time.Now()
			at    []time.Duration
		)

		err := wait.Backoff(t.Context(), 20*time.Millisecond, 100*time.Millisecond, func(context.Context) error {
			if at = append(at, time.Since(began)/time.Millisecond); len(at) < 6 {
				return errNotYet
			}

			return nil
		})

		if want := []time.Duration{0, 20, 60, 140, 240, 340}; err != nil || !slices.Equal(at, want) {
			t.Errorf("err = %v after calls at %d ms, want %d", err, at, want)
		}
	})
}

func TestUntil_repeats(t *testing.T) {
	t.Parallel()

	calls := 0

	err := wait.Until(t.Context(), time.Millisecond, func(context.Context) error {
		if calls++; calls < 4 {
			return errNotYet
		}

		return nil
	})
	if err != nil || calls != 4 {
		t.Errorf("err = %v after %d calls, want nil after 4", err, calls)
	}
}

func TestUntil_stopsAtPermanent(t *testing.T) {
	t.Parallel()

	refused := errors.New("configuration refused")
	calls := 0

	err := wait.Until(t.Context(), time.Millisecond, func(context.Context) error {
		if calls++; calls < 2 {
			return errNotYet
		}

		return fmt.Errorf("apply: %w", wait.Permanent(refused))
	})
	if !errors.Is(err, refused) || !wait.IsPermanent(err) || calls != 2 {
		t.Errorf("err = %v after %d calls, want the permanent error after 2", err, calls)
	}
}

func TestUntil_keepsTheLastReason(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancelCause(t.Context())
	calls := 0

	err := wait.Until(ctx, time.Millisecond, func(context.Context) error {
		switch calls++; calls {
		case 1:
			return errors.New("the machine boots")
		case 2:
			return errNotYet
		default:
			cancel(context.DeadlineExceeded)

			return errors.New("no answer")
		}
	})
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errNotYet) {
		t.Errorf("err = %v, want the deadline and the last reason", err)
	}
}

// A condition that was cut off by the deadline reports the deadline; the reason that
// helps is the one before.
func TestUntil_forgetsTheReasonOfTheCallThatWasCutOff(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	calls := 0

	err := wait.Until(ctx, time.Millisecond, func(ctx context.Context) error {
		if calls++; calls == 1 {
			return errNotYet
		}

		cancel(interrupted)

		return ctx.Err()
	})
	if !errors.Is(err, interrupted) || !errors.Is(err, errNotYet) || errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the cause and the reason of the first call", err)
	}
}

func TestUntil_reportsAContextThatEndedBefore(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	err := wait.Until(ctx, time.Millisecond, func(context.Context) error { return errNotYet })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v, want the cancellation", err)
	}
}

func TestUntil_endsPromptlyInAPause(t *testing.T) {
	t.Parallel()

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	called := make(chan struct{})

	go func() {
		done <- wait.Until(ctx, time.Hour, func(context.Context) error {
			close(called)

			return errNotYet
		})
	}()

	<-called
	cancel()

	select {
	case err := <-done:
		if !strings.Contains(err.Error(), "last reason: "+errNotYet.Error()) {
			t.Errorf("err = %v, want the last reason", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("Until did not end with its context")
	}
}
