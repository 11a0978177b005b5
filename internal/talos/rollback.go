package talos

import (
	"context"
	"fmt"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Rollback makes a member start with the Talos of its other boot entry, which is the one before its last upgrade,
// after it compared the hardware UUID on a new connection. It returns when the machine went down, or when that was
// not observed in time. Disruptive, and not safe to repeat: a second one undoes the first. ErrInProgress is a
// machine in any other sequence, which Talos would interrupt (Talos 1.13, MachineService.Rollback, WithTakeover).
// Permanent are ErrUnsupported (a container, or no system disk), ErrRejected (no other entry) and
// ErrNotAuthorized.
func (m *Machine) Rollback(ctx context.Context, uuid string) error {
	return doing(m.rollback(ctx, usableUUID(uuid)), "roll back Talos on %s", m.address)
}

func (m *Machine) rollback(ctx context.Context, uuid string) error {
	s, _, err := m.interrupting(ctx, uuid, "")
	if err != nil {
		return err
	}

	boot, err := bounded(ctx, m, s.bootID)
	if err != nil {
		return err
	}

	sent := m.sendRollback(ctx, s)
	if sent != nil && !s.ambiguous(sent) {
		return sent
	}

	// One that was accepted reverts the boot entry before it answers, and is done, however late the machine goes down
	// (Talos 1.13, v1alpha1_server.go/Rollback).
	if err := m.settle(ctx, m.leftIdle(boot)); sent != nil {
		return err
	}

	return nil
}

func (m *Machine) sendRollback(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Change)
	defer cancel()

	_, err := s.machine.Rollback(ctx, &machineapi.RollbackRequest{})

	switch status.Code(err) {
	case codes.FailedPrecondition:
		return wait.Permanent(fmt.Errorf("%w: %w", ErrUnsupported, plain(err)))
	case codes.Unknown:
		// The bootloader knows no other entry.
		return wait.Permanent(fmt.Errorf("%w: %w", ErrRejected, plain(err)))
	default:
		return final(s.failed(err))
	}
}

// DefragmentEtcd frees the disk space that the database of the machine's member does not use, and returns when
// that is done. The member answers no request meanwhile, which takes seconds to minutes. Safe to repeat.
// ErrUnsupported (a worker) and ErrNotAuthorized are permanent.
func (m *Machine) DefragmentEtcd(ctx context.Context) error {
	s, err := m.changing(ctx, step.Member, m.knownUUID())
	if err != nil {
		return fmt.Errorf("defragment etcd on %s: %w", m.address, err)
	}

	ctx, cancel := context.WithTimeout(ctx, m.fleet.options.Timeouts.Upgrade)
	defer cancel()

	if _, err := s.machine.EtcdDefragment(ctx, &emptypb.Empty{}); err != nil {
		return fmt.Errorf("defragment etcd on %s: %w", m.address, s.etcdFailed(err))
	}

	return nil
}
