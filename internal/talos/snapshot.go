package talos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
)

// EtcdSnapshot streams a snapshot of the machine's etcd member: its database followed by its SHA-256. Talos ends
// the stream without an error when reading fails half way (Talos 1.13, EtcdSnapshot), so the caller has to verify
// the sum. Control plane only. The context bounds it, and Timeouts.Stall bounds each piece; the time of the writer
// does not count.
func (m *Machine) EtcdSnapshot(ctx context.Context, to io.Writer) error {
	return doing(m.etcdSnapshot(ctx, to), "take a snapshot of etcd on %s", m.address)
}

func (m *Machine) etcdSnapshot(ctx context.Context, to io.Writer) error {
	s, err := m.changing(ctx, step.Member, m.knownUUID())
	if err != nil {
		return err
	}

	ctx, pace := m.paced(ctx)
	defer pace.stop()

	stream, err := s.machine.EtcdSnapshot(ctx, &machineapi.EtcdSnapshotRequest{})
	if err != nil {
		return s.failed(err)
	}

	for {
		var data *common.Data

		err := pace.step(func() (err error) {
			data, err = stream.Recv()

			return err
		})

		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && ctx.Err() != nil:
			return callError(context.Cause(ctx))
		case err != nil:
			return s.failed(err)
		}

		if _, err := to.Write(data.GetBytes()); err != nil {
			return fmt.Errorf("write the snapshot: %w", err)
		}
	}
}

// pace ends a stream whose other side stopped moving. Without it a machine that lost its
// power is waited for as long as the network stack tries, which is a quarter of an hour.
type pace struct {
	limit time.Duration
	timer *time.Timer
	stop  func()
}

// paced is a context for a stream, with the pace that ends it.
func (m *Machine) paced(ctx context.Context) (context.Context, *pace) {
	limit := m.fleet.options.Timeouts.Stall

	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cancel(fmt.Errorf("%w: no data transferred for %s", ErrUnreachable, limit)) })
	timer.Stop()

	return ctx, &pace{limit: limit, timer: timer, stop: func() {
		timer.Stop()
		cancel(nil)
	}}
}

// step runs one call that waits for the other side.
func (p *pace) step(call func() error) error {
	p.timer.Reset(p.limit)
	defer p.timer.Stop()

	return call()
}
