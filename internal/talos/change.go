package talos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// changing opens a new session for a call that changes the machine. It checks that the machine answers in the
// expected mode and has its known hardware UUID. Every later call of the session reaches this very machine.
func (m *Machine) changing(ctx context.Context, access step.Access, uuid string) (*session, error) {
	s, err := m.dial(ctx)
	if err != nil {
		return nil, err
	}

	if err := s.expect(access); err != nil {
		return nil, err
	}

	if uuid == "" {
		return s, nil
	}

	got, err := bounded(ctx, m, s.hardwareUUID)
	if err != nil {
		return nil, err
	}

	switch {
	case got == "":
		// Early in a boot the hardware is not read yet.
		return nil, fmt.Errorf("%w: the machine at %s reports no hardware UUID, expected %s", ErrInProgress, s.address,
			uuid)
	case !m.known(uuid).MayReport(got):
		return nil, wait.Permanent(foreignError("the machine at %s has the hardware UUID %s, expected %s", s.address, got,
			uuid))
	default:
		return s, nil
	}
}

// known is the machine as it was last asked for, with the UUID that counts.
func (m *Machine) known(uuid string) cluster.Machine {
	meant := m.asWanted()
	meant.UUID = uuid

	return meant
}

// knownUUID is the hardware UUID in the request for the machine.
func (m *Machine) knownUUID() string {
	m.mu.Lock()
	defer m.mu.Unlock()

	return usableUUID(m.uuid)
}

// asWanted is the machine as it was last requested.
func (m *Machine) asWanted() cluster.Machine {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.wanted
}

// ambiguous reports whether the error of a call leaves open if the machine carried
// it out: the connection broke, or the deadline passed, before the answer came. An
// error on a connection that is alive is the machine's own answer.
func (s *session) ambiguous(err error) bool {
	return unreachable(err) && (!s.alive() || errors.Is(err, context.DeadlineExceeded))
}

// settle waits for the effect of a change until it is there, or the time for it is
// over.
func (m *Machine) settle(ctx context.Context, check func(context.Context) error) error {
	return m.within(ctx, m.fleet.options.Timeouts.Settle, check)
}

// within waits until a check has no error, or its time has expired. The deadline does not cut a running check
// short, so its error is about the machine and not about the deadline. The error carries the last reason.
func (m *Machine) within(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	waiting, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: timed out after %s", ErrInProgress, limit))
	defer cancel()

	return wait.Until(waiting, m.fleet.options.Timeouts.Poll, func(context.Context) error { return check(ctx) })
}

// orSettled looks for the effect of a call on a member whose answer was lost; any other
// outcome stays what it is.
func (m *Machine) orSettled(
	ctx context.Context, s *session, err error, check func(context.Context, *session) error,
) error {
	if err == nil || !s.ambiguous(err) {
		return err
	}

	lost := m.settle(ctx, func(ctx context.Context) error {
		s, _, err := m.connected(ctx)
		if err != nil {
			return err
		}

		if err := s.expect(step.Member); err != nil {
			return err
		}

		return check(ctx, s)
	})
	if lost != nil {
		return fmt.Errorf("%w; the call had no visible effect: %w", err, lost)
	}

	return nil
}

// gone reports whether a failed attempt to connect shows that the machine stopped
// answering. The end of the caller's context shows nothing, and neither do control planes that did not even try.
func gone(ctx context.Context, err error) bool {
	var through throughError
	if errors.As(err, &through) && through.untried() {
		return false
	}

	return err != nil && ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}
