// Package wait polls for a condition and keeps the last reason why it was not met, so that a timeout says what was
// missing.
package wait

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// permanent marks an error that no further attempt will cure.
type permanent struct{ err error }

func (p permanent) Error() string { return p.err.Error() }
func (p permanent) Unwrap() error { return p.err }

// Permanent marks err as final: [Until] stops at it, and callers that retry on
// their own can ask [IsPermanent]. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}

	return permanent{err}
}

// IsPermanent reports whether err, or an error it wraps, was marked final.
func IsPermanent(err error) bool {
	var p permanent

	return errors.As(err, &p)
}

// Until calls condition, at once and then every interval, until it returns nil
// or a [Permanent] error. When ctx ends first, the error wraps both the context's
// error and the last reason that condition gave. The interval runs from the end
// of one call to the start of the next.
func Until(ctx context.Context, interval time.Duration, condition func(context.Context) error) error {
	return Backoff(ctx, interval, interval, condition)
}

// Backoff is [Until] with an interval that begins with first and doubles up to longest, for conditions that are
// often met at once, and otherwise take long.
func Backoff(ctx context.Context, first, longest time.Duration, condition func(context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}

	interval := first

	timer := time.NewTimer(interval)
	defer timer.Stop()

	var reason error

	for {
		err := condition(ctx)
		if err == nil || IsPermanent(err) {
			return err
		}

		// A call cut off by the deadline says less than the one before it.
		if reason == nil || !Over(ctx) {
			reason = err
		}

		timer.Reset(interval)

		interval = min(2*interval, longest)

		select {
		case <-ctx.Done():
			return stopped(context.Cause(ctx), reason)
		case <-timer.C:
		}
	}
}

// Over reports whether ctx has ended, or its deadline has passed: the timers of connections may be a moment ahead
// of its own. An error of such a moment only says that the time expired, and nothing about the server.
func Over(ctx context.Context) bool {
	deadline, bounded := ctx.Deadline()

	return ctx.Err() != nil || bounded && !time.Now().Before(deadline)
}

func stopped(cause, reason error) error {
	return fmt.Errorf("%w; last reason: %w", cause, reason)
}
