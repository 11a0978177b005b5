package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// leaveForReset is the task of a graceful reset: a machine whose etcd has no data, or whose
// service does not run, has nothing to leave (Talos 1.13, LeaveEtcd).
func (b *boot) leaveForReset(ctx context.Context) error {
	state, _ := b.Services.State("etcd")
	if b.etcdNode() == nil || !slices.Contains([]machined.ServiceState{machined.ServiceRunning, machined.ServiceStopping, machined.ServiceFailed}, state) {
		return nil
	}

	return b.leaveEtcd(ctx)
}

// leaveEtcd removes the machine's member and deletes its data, as a graceful reset and
// EtcdLeaveCluster do. Talos 1.13 reads the member's id from a resource that is there while
// etcd is healthy, and waits three minutes for it (etcd.GetLocalMemberID). It tries again
// while the cluster is not healthy, and when the member stopped: it may have removed itself
// before it could answer.
func (b *boot) leaveEtcd(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, b.atLeast(b.m.Delays.EtcdMember, realLeave))
	defer cancel()

	if err := b.World.Await(limited, func() bool { return b.etcdUp && b.m.Disk.Etcd != nil }); err != nil {
		return fmt.Errorf("failed to leave cluster: failed to get local etcd member ID: %w", err)
	}

	return b.leaveMembers(ctx, b.etcdNode())
}

func (b *boot) leaveMembers(ctx context.Context, node etcd.Node) error {
	limit := b.atLeast(b.m.Delays.EtcdLeave, realLeave)

	// Once the member has stopped, only another one can say whether it is removed.
	stopped := false

	for deadline := time.Now().Add(limit); ; {
		via, err := b.anyMember(ctx)
		if err == nil {
			err = via.Remove(ctx, node.ID())
		}

		if err == nil || errors.Is(err, etcd.ErrMemberNotFound) {
			break
		}

		stopped = stopped || errors.Is(err, etcd.ErrStopped)
		if !stopped && !errors.Is(err, etcd.ErrUnhealthy) || time.Now().After(deadline) {
			return fmt.Errorf("failed to leave cluster: failed to remove member %d: %w", node.ID(), err)
		}

		if err := timing.Pause(ctx, leaveRetry); err != nil {
			return err
		}
	}

	b.etcd.Stop()
	b.Services.Stop("etcd")
	b.World.Update(func() { b.m.Disk.Etcd = nil })
	node.Wipe()

	return nil
}
