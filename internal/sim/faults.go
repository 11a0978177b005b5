package sim

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// SetFault adds a fault to the machine. Faults do not survive ClearFaults, but do
// survive reboots.
func (m *Machine) SetFault(f fault.Fault) {
	m.sim.faults.Set(m.Name(), f)
}

// ClearFaults removes the machine's faults.
func (m *Machine) ClearFaults() {
	m.sim.faults.Clear(m.Name())
}

// strike applies the part of a fault that comes before the call is served. A nil
// error means that the call is to be served.
func (b *boot) strike(ctx context.Context, f fault.Fault) error {
	if err := timing.Pause(ctx, f.Latency); err != nil {
		return status.FromContextError(err).Err()
	}

	switch {
	case f.Crash:
		b.m.crash()
		b.cut(ctx)

		return errCut
	case f.Cut:
		b.cut(ctx)

		return errCut
	case f.EndEarly:
		return errEndEarly
	case f.Code != codes.OK:
		msg := f.Message
		if msg == "" {
			msg = "injected fault"
		}

		return status.Error(f.Code, msg)
	default:
		return nil
	}
}

// errEndEarly ends the handler of a stream that is to end early.
var errEndEarly = errors.New("the stream ends early")
