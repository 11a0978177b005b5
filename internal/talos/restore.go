package talos

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// Restore is [Machine.Bootstrap] with the data of a snapshot, which is the database of a member followed by its
// SHA-256. It takes the same care. It sends the snapshot only to a machine whose etcd waits, and bootstraps only a
// complete upload, once confirm returns no error. A nil error means that etcd runs on that data, or has data since
// an earlier boot.
//
// Talos verifies and restores after it answered (Talos 1.13, recoverFromSnapshot). So the call waits for the
// outcome, and so does a repeated call. A snapshot that Talos refuses is a permanent error with Talos's reason,
// and so is a machine that restarts meanwhile: a database with missing pages ends machined itself (bbolt 1.4,
// Tx.Check). Verify the snapshot first: the leftovers of a failed restore in the data directory need a reset.
//
// Timeouts.Stall bounds each piece, and Timeouts.Restore bounds the outcome.
func (m *Machine) Restore(ctx context.Context, snapshot io.Reader, confirm func(context.Context) error) error {
	return doing(m.restore(ctx, snapshot, confirm), "restore etcd on %s", m.address)
}

func (m *Machine) restore(ctx context.Context, snapshot io.Reader, confirm func(context.Context) error) error {
	s, err := m.changing(ctx, step.Member, m.knownUUID())
	if err != nil {
		return err
	}

	boot, err := bounded(ctx, m, s.bootID)
	if err != nil {
		return err
	}

	wanted, requested, err := m.wantsBootstrap(ctx, s)

	switch {
	case err != nil:
		return err
	case wanted:
		if err := m.uploadSnapshot(ctx, s, snapshot); err != nil {
			return fmt.Errorf("send the snapshot: %w", err)
		}

		if err := confirm(ctx); err != nil {
			return err
		}

		if err := m.bootstrap(ctx, s, &machineapi.BootstrapRequest{RecoverEtcd: true}); err != nil {
			return err
		}
	case !requested:
		return nil
	}

	return m.awaitRestored(ctx, boot)
}

// uploadSnapshot sends a snapshot to the machine, which keeps it as a file until a bootstrap uses it. It replaces
// an existing file. Talos removes an incomplete upload (Talos 1.13, EtcdRecover).
func (m *Machine) uploadSnapshot(ctx context.Context, s *session, snapshot io.Reader) error {
	ctx, pace := m.paced(ctx)
	defer pace.stop()

	stream, err := s.machine.EtcdRecover(ctx)
	if err != nil {
		return final(s.failed(err))
	}

	sent := pace.send(stream, snapshot)
	if sent != nil && !errors.Is(sent, errEnded) {
		return sent
	}

	err = pace.step(func() error {
		_, err := stream.CloseAndRecv()

		return err
	})

	switch {
	case err != nil && ctx.Err() != nil:
		return callError(context.Cause(ctx))
	case err != nil:
		return final(s.failed(err))
	case sent != nil:
		return fmt.Errorf("%w: %w", ErrUnreachable, sent)
	default:
		return nil
	}
}

// uploadChunk is the bytes of one message, far below gRPC's limit of 4 MiB.
const uploadChunk = 64 << 10

// errEnded means that the machine ended a stream; only its answer says why.
var errEnded = errors.New("the machine closed the stream before the snapshot was complete")

// send sends all there is to read.
func (p *pace) send(stream machineapi.MachineService_EtcdRecoverClient, from io.Reader) error {
	chunk := make([]byte, uploadChunk)

	for {
		n, failure := from.Read(chunk)

		if n > 0 && p.step(func() error { return stream.Send(&common.Data{Bytes: chunk[:n]}) }) != nil {
			return errEnded
		}

		switch {
		case failure == io.EOF: // one that is wrapped is the end of something else
			return nil
		case failure != nil:
			return fmt.Errorf("read the snapshot: %w", failure)
		}
	}
}

// awaitRestored waits for what becomes of a restoration in this boot.
func (m *Machine) awaitRestored(ctx context.Context, boot string) error {
	limit := m.fleet.options.Timeouts.Restore

	waiting, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: timed out after %s", ErrInProgress, limit))
	defer cancel()

	var refusal error

	err := wait.Until(waiting, m.fleet.options.Timeouts.Poll, func(ctx context.Context) error {
		s, etcd, err := m.etcdOf(ctx, boot)
		if err != nil {
			return err
		}

		switch step.ServiceState(etcd.GetState()) {
		case step.ServiceRunning:
			return nil
		case step.ServiceFailed:
			refusal, err = m.refusal(ctx, s, lastMessage(etcd))

			return err
		default:
			return fmt.Errorf("%w: the etcd service is %s", ErrInProgress, etcd.GetState())
		}
	})
	if err != nil {
		return err
	}

	return refusal
}

// etcdOf is the etcd service of a member, as long as that is in a boot.
func (m *Machine) etcdOf(ctx context.Context, boot string) (*session, *machineapi.ServiceInfo, error) {
	s, _, err := m.connected(ctx)
	if err != nil {
		return nil, nil, err
	}

	if err := s.expect(step.Member); err != nil {
		return nil, nil, err
	}

	now, err := bounded(ctx, m, s.bootID)
	if err != nil {
		return nil, nil, err
	}

	if now != boot {
		return nil, nil, wait.Permanent(errors.New("the machine restarted during the restore"))
	}

	etcd, err := bounded(ctx, m, func(ctx context.Context) (*machineapi.ServiceInfo,
		error) {
		return s.service(ctx, etcdServiceID)
	})

	return s, etcd, err
}

// refusal returns Talos's reason for refusing a snapshot, and what to do about it.
func (m *Machine) refusal(ctx context.Context, s *session, reason string) (refusal, err error) {
	data, err := bounded(ctx, m, s.etcdHasData)

	switch {
	case err != nil:
		return nil, err
	case data:
		return wait.Permanent(fmt.Errorf(
			"etcd refused the snapshot and left incomplete data, which blocks a new bootstrap: %s; "+
				"reset the machine, then apply again with another snapshot", reason)), nil
	case notThere(reason):
		// The machine notices a broken upload late, and then removes the file even if a later upload has written
		// it (EtcdRecover, Talos 1.13).
		return fmt.Errorf("%w: an earlier, interrupted upload removed the snapshot: %s", ErrInProgress, reason), nil
	default:
		return wait.Permanent(fmt.Errorf("etcd refused the snapshot: %s; apply again with another snapshot", reason)), nil
	}
}
