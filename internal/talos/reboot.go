package talos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/cluster"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Reboot restarts a member, after the hardware UUID was compared on a new connection,
// and returns when the machine went down. Disruptive. A machine that is rebooting
// already is left to it. Permanent are ErrUnsupported (a container cannot reboot),
// ErrRejected and ErrNotAuthorised.
//
// As with a reset, Talos answers OK even when another sequence is in its way and
// nothing happens ("locked", Talos 1.13), which is ErrInProgress here.
func (m *Machine) Reboot(ctx context.Context, uuid string) error {
	if err := m.reboot(ctx, usableUUID(uuid)); err != nil {
		return fmt.Errorf("reboot %s: %w", m.address, err)
	}

	return nil
}

func (m *Machine) reboot(ctx context.Context, uuid string) error {
	s, begun, err := m.interrupting(ctx, uuid, cluster.StageRebooting)
	if err != nil || begun {
		return err
	}

	boot, err := bounded(ctx, m, s.bootID)
	if err != nil {
		return err
	}

	if err := m.sendReboot(ctx, s); err != nil && !s.ambiguous(err) {
		return err
	}

	return m.settle(ctx, m.leftIdle(boot))
}

func (m *Machine) sendReboot(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Change)
	defer cancel()

	_, err := s.machine.Reboot(ctx, &machineapi.RebootRequest{Mode: machineapi.RebootRequest_DEFAULT})

	// The call has no other precondition than a platform that can reboot.
	if status.Code(err) == codes.FailedPrecondition {
		return wait.Permanent(fmt.Errorf("%w: %w", ErrUnsupported, plain(err)))
	}

	return final(s.failed(err))
}

// interrupting opens a session for a call that takes a member down, as changing does. begun
// is true when the machine is in the stage of that very call already; in any other one that
// is not idle it is ErrInProgress.
func (m *Machine) interrupting(ctx context.Context, uuid string, own cluster.Stage) (s *session, begun bool, err error) {
	s, err = m.changing(ctx, cluster.Member, uuid)
	if err != nil {
		return nil, false, err
	}

	stage, _, _, err := m.status(ctx, s)

	switch {
	case err != nil:
		return nil, false, err
	case stage != own && !idle(stage):
		return nil, false, fmt.Errorf("%w: it is %s", ErrInProgress, stage)
	default:
		return s, stage == own, nil
	}
}

// idle machines run no sequence that a reset, a reboot or an upgrade has to wait for:
// Talos lets them take over the boot.
func idle(stage cluster.Stage) bool {
	return stage == cluster.StageBooting || stage == cluster.StageRunning || stage == cluster.StageUnknown
}

// leftIdle looks whether the machine left the stage it was told to go down in. One
// that stopped answering has left it, and so has one in another boot, where the one it
// was in is known.
func (m *Machine) leftIdle(boot string) func(context.Context) error {
	return func(ctx context.Context) error {
		s, _, err := m.connected(ctx)

		switch {
		case gone(ctx, err):
			return nil
		case err != nil:
			return err
		case s.peer.access != cluster.Member:
			return nil
		}

		stage, _, _, err := m.status(ctx, s)
		if err != nil || !idle(stage) {
			return err
		}

		if boot != "" {
			now, err := bounded(ctx, m, s.bootID)
			if err != nil || now != boot {
				return err
			}
		}

		return fmt.Errorf("it is still %s: Talos takes the call and does nothing while another sequence is under way", stage)
	}
}

// bootIDFile is where Linux tells the boot it is in.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// bootID returns the id of the boot that the machine is in, read once in a session. It
// needs the role os:admin.
func (s *session) bootID(ctx context.Context) (string, error) {
	if known := s.boot.Load(); known != nil {
		return *known, nil
	}

	id, err := s.readBootID(ctx)
	if err == nil {
		s.boot.Store(&id)
	}

	return id, err
}

func (s *session) readBootID(ctx context.Context) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	stream, err := s.machine.Read(ctx, &machineapi.ReadRequest{Path: bootIDFile})
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", s.failed(err))
	}

	var content strings.Builder

	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return "", fmt.Errorf("read the boot id: %w", s.failed(err))
		}

		content.Write(part.GetBytes())
	}

	id := strings.TrimSpace(content.String())
	if id == "" {
		return "", errors.New("read the boot id: it is empty")
	}

	return id, nil
}
