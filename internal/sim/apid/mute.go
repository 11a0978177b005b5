package apid

import (
	"context"
	"errors"

	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// takeOnly takes connections for a while and answers none of them, also later, until ctx ends. That was seen of real
// machines that had just got their configuration.
func (s *Server) takeOnly(ctx context.Context) error {
	if s.Delays.Mute == 0 {
		return nil
	}

	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}

	taken := make(chan struct{})

	s.Spawn(func(ctx context.Context) {
		defer close(taken)

		for {
			conn, err := listener.Accept()
			if err != nil {
				return // it was closed
			}

			s.calls.Connected()
			context.AfterFunc(ctx, func() { _ = conn.Close() }) // the peer sees it go
		}
	})

	err = timing.Pause(ctx, s.Delays.Mute)
	err = errors.Join(err, listener.Close())

	select {
	case <-taken:
	case <-ctx.Done():
	}

	return err
}
