package talos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Reboot restarts a member, after it compared the hardware UUID on a new connection, and returns when the machine
// went down. Disruptive. It leaves a machine alone that is rebooting already. Permanent are ErrUnsupported,
// ErrRejected and ErrNotAuthorized.
//
// In a container Talos refuses the call. But it exits for a configuration that is applied in mode REBOOT, even an
// unchanged one. The container runtime then starts it again, with the same address and volumes. So Reboot applies
// the configuration there. A Talos that no longer takes that mode (1.14) is ErrUnsupported.
//
// As with a reset, Talos answers OK even when another sequence is in its way and nothing happens ("locked", Talos
// 1.13), which is ErrInProgress here.
func (m *Machine) Reboot(ctx context.Context, uuid string) error {
	return doing(m.reboot(ctx, usableUUID(uuid)), "reboot %s", m.address)
}

func (m *Machine) reboot(ctx context.Context, uuid string) error {
	s, begun, err := m.interrupting(ctx, uuid, step.StageRebooting)
	if err != nil || begun {
		return err
	}

	boot, err := bounded(ctx, m, s.bootID)
	if err != nil {
		return err
	}

	err = m.sendReboot(ctx, s)

	switch {
	case errors.Is(err, errNoReboot):
		return m.restartContainer(ctx, s, err)
	case err != nil && !s.ambiguous(err):
		return err
	}

	return m.settle(ctx, m.leftIdle(boot))
}

// errNoReboot is the refusal of a platform that cannot reboot.
var errNoReboot = fmt.Errorf("%w: the platform cannot reboot", ErrUnsupported)

// restartContainer makes Talos in a container exit for a new start. It applies the configuration of that start:
// the staged one, or else the active one. Where the machine is no container, the refusal is returned.
func (m *Machine) restartContainer(ctx context.Context, s *session, refusal error) error {
	version, err := bounded(ctx, m, s.version)
	if err != nil {
		return err
	}

	if version.GetPlatform().GetMode() != containerMode {
		return refusal
	}

	started, err := bounded(ctx, m, s.startedAt)
	if err != nil {
		return err
	}

	config, err := bounded(ctx, m, s.nextConfig)
	if err != nil {
		return err
	}

	err = m.apply(ctx, s, &machineapi.ApplyConfigurationRequest{Data: config,
		Mode: machineapi.ApplyConfigurationRequest_REBOOT}) //nolint:staticcheck // the only way in containers up to Talos 1.13
	if err != nil && !s.ambiguous(err) {
		return final(err)
	}

	return m.settle(ctx, func(ctx context.Context) error {
		err := m.leftIdle("")(ctx)
		if err == nil {
			return nil
		}

		// It may be up again already. Its kernel tells nothing, which is the host's.
		if s, _, lost := m.connected(ctx); lost == nil {
			if now, lost := bounded(ctx, m, s.startedAt); lost == nil && !now.Equal(started) {
				return nil
			}
		}

		return err
	})
}

// startedAt distinguishes one run of Talos from the next: its resources are kept in memory, and this
// is the age of one that it makes at its start.
func (s *session) startedAt(ctx context.Context) (time.Time, error) {
	res, err := get[*runtime.MachineStatus](ctx, s, runtime.NamespaceName, runtime.MachineStatusType,
		runtime.MachineStatusID)
	if err != nil {
		return time.Time{}, optional(err)
	}

	return res.Metadata().Created(), nil
}

func (m *Machine) sendReboot(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Change)
	defer cancel()

	_, err := s.machine.Reboot(ctx, &machineapi.RebootRequest{Mode: machineapi.RebootRequest_DEFAULT})

	// The call has no other precondition than a platform that can reboot.
	if status.Code(err) == codes.FailedPrecondition {
		return wait.Permanent(fmt.Errorf("%w: %w", errNoReboot, plain(err)))
	}

	return final(s.failed(err))
}

// interrupting opens a session for a call that takes a member down, as changing does. begun
// is true when the machine is in the stage of that very call already; in any other one that
// is not idle it is ErrInProgress.
func (m *Machine) interrupting(
	ctx context.Context, uuid string, own step.Stage,
) (s *session, begun bool, err error) {
	s, err = m.changing(ctx, step.Member, uuid)
	if err != nil {
		return nil, false, err
	}

	stage, _, _, err := m.status(ctx, s)

	switch {
	case err != nil:
		return nil, false, err
	case stage != own && !idle(stage):
		return nil, false, fmt.Errorf("%w: the machine is %s", ErrInProgress, stage)
	default:
		return s, stage == own, nil
	}
}

// idle machines run no sequence that a reset, a reboot or an upgrade has to wait for:
// Talos lets them take over the boot.
func idle(stage step.Stage) bool {
	return stage == step.StageBooting || stage == step.StageRunning || stage == step.StageUnknown
}

// leftIdle reports whether the machine left the stage in which it was asked to go down. A machine that stopped
// answering has left it. So has one in another boot, where the earlier boot is known.
func (m *Machine) leftIdle(boot string) func(context.Context) error {
	return func(ctx context.Context) error {
		s, _, err := m.connected(ctx)

		switch {
		case gone(ctx, err):
			return nil
		case err != nil:
			return err
		case s.peer.access != step.Member:
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

		return fmt.Errorf("the machine is still %s: Talos accepts the call and ignores it while another sequence "+
			"runs", stage)
	}
}

// bootIDFile is where Linux shows the id of its boot.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// bootID returns the id of the boot that the machine is in. It needs the role os:admin.
func (s *session) bootID(ctx context.Context) (string, error) {
	return once(ctx, s, &s.known.boot, s.readBootID)
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
		return "", errors.New("read the boot id: the file is empty")
	}

	return id, nil
}
