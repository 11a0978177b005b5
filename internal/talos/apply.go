package talos

import (
	"context"
	"errors"
	"fmt"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// ApplyConfig sends a configuration, on a new connection, after the hardware UUID was
// compared on that connection. It is safe to repeat.
//
// A machine in maintenance mode gets it in mode AUTO, which never fails over the
// question of a reboot there; the call returns when the machine left maintenance
// mode. A member gets it in mode NO_REBOOT: a change that would need a reboot is
// ErrRejected. Mode REBOOT, the zero value of the API, is never used: it reboots even
// when nothing changed (Talos 1.13). ErrRejected, ErrUnsupported and, on a member,
// ErrNotAuthorized are permanent.
func (m *Machine) ApplyConfig(ctx context.Context, config []byte, access step.Access, uuid string) error {
	if access != step.Maintenance && access != step.Member {
		return wait.Permanent(fmt.Errorf("apply configuration to %s: not possible while the machine is %s", m.address,
			access))
	}

	s, err := m.changing(ctx, access, usableUUID(uuid))
	if err != nil {
		return fmt.Errorf("apply configuration to %s: %w", m.address, err)
	}

	if access == step.Member {
		err = m.applyMember(ctx, s, config)
	} else {
		err = m.applyMaintenance(ctx, s, config)
	}

	return doing(err, "apply configuration to %s", m.address)
}

func (m *Machine) applyMember(ctx context.Context, s *session, config []byte) error {
	return final(m.apply(ctx, s, &machineapi.ApplyConfigurationRequest{Data: config,
		Mode: machineapi.ApplyConfigurationRequest_NO_REBOOT}))
}

func (m *Machine) applyMaintenance(ctx context.Context, s *session, config []byte) error {
	err := m.apply(ctx, s, &machineapi.ApplyConfigurationRequest{Data: config,
		Mode: machineapi.ApplyConfigurationRequest_AUTO})

	switch {
	case errors.Is(err, ErrNotAuthorized):
		// Any client may configure a machine in maintenance mode, so it has left that mode: an earlier
		// configuration was accepted.
		return fmt.Errorf("%w: the machine already has a configuration: %w", ErrInProgress, err)
	case err != nil && !s.ambiguous(err):
		return err
	}

	// Also after a lost answer: leaving maintenance mode is the answer.
	if left := m.settle(ctx, m.leftMaintenance); left != nil {
		if err != nil {
			return fmt.Errorf("%w; the machine did not leave maintenance mode: %w", err, left)
		}

		return fmt.Errorf("the machine accepted the configuration but did not leave maintenance mode: %w", left)
	}

	return nil
}

func (m *Machine) apply(ctx context.Context, s *session, request *machineapi.ApplyConfigurationRequest) error {
	ctx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Change)
	defer cancel()

	if err := m.takes(ctx, s, request.GetData()); err != nil {
		return err
	}

	_, err := s.machine.ApplyConfiguration(ctx, request)
	if err == nil {
		return nil
	}

	err = redacted(s.failed(err), request.GetData())

	switch {
	case errors.Is(err, ErrRejected), errors.Is(err, ErrUnsupported):
		return wait.Permanent(err)
	default:
		return err
	}
}

// takes asks Options.Takes about a member's configuration and another one.
func (m *Machine) takes(ctx context.Context, s *session, config []byte) error {
	takes := m.fleet.options.Takes
	if takes == nil || s.peer.access != step.Member {
		return nil
	}

	active, err := bounded(ctx, m, s.activeConfig)
	if err != nil {
		return err
	}

	if err := takes(active, config); err != nil {
		return wait.Permanent(fmt.Errorf("%w: %w", ErrRejected, err))
	}

	return nil
}

// leftMaintenance is nil once the machine does not wait in maintenance mode any more.
// A port that is closed counts: the API restarts to change its certificate.
func (m *Machine) leftMaintenance(ctx context.Context) error {
	s, err := m.dial(ctx)

	switch {
	case gone(ctx, err):
		return nil
	case err != nil:
		return err
	case s.peer.access != step.Maintenance:
		return nil
	}

	stage, _, _, err := m.status(ctx, s)

	switch {
	case err != nil:
		return err
	case stage == step.StageMaintenance:
		return errors.New("the machine is still in maintenance mode")
	default:
		return nil
	}
}
