package talos

import (
	"context"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// Shutdown shuts a member down, after it compared the hardware UUID on a new connection, and returns when the machine
// is going down. Disruptive. It wipes nothing. Talos does not drain the node (force), because its caller has done so
// where that was wanted. Permanent are ErrUnsupported, ErrRejected and ErrNotAuthorized.
//
// Unlike a reset, a shutdown takes over a sequence that is in its way (Talos 1.13).
func (m *Machine) Shutdown(ctx context.Context, uuid string) error {
	return doing(m.shutdown(ctx, usableUUID(uuid)), "shut down %s", m.address)
}

func (m *Machine) shutdown(ctx context.Context, uuid string) error {
	s, begun, err := m.interrupting(ctx, uuid, step.StageShuttingDown)
	if err != nil || begun {
		return err
	}

	if err := m.sendShutdown(ctx, s); err != nil && !s.ambiguous(err) {
		return err
	}

	return m.settle(ctx, m.leftIdle(""))
}

func (m *Machine) sendShutdown(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Change)
	defer cancel()

	_, err := s.machine.Shutdown(ctx, &machineapi.ShutdownRequest{Force: true})

	return final(s.failed(err))
}
