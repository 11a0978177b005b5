package etcdservice

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

// LeaveForReset is the task of a graceful reset: a machine whose etcd has no data, or whose
// service does not run, has nothing to leave (Talos 1.13, LeaveEtcd).
func (s *Service) LeaveForReset(ctx context.Context) error {
	state, _ := s.Services.State("etcd")
	if s.Node() == nil || !slices.Contains(
		[]machined.ServiceState{machined.ServiceRunning, machined.ServiceStopping, machined.ServiceFailed}, state) {
		return nil
	}

	return s.Leave(ctx)
}

// Leave removes the machine's member and deletes its data, as a graceful reset and
// EtcdLeaveCluster do. Talos 1.13 reads the member's id from a resource that is there while
// etcd is healthy, and waits three minutes for it (etcd.GetLocalMemberID). It tries again
// while the cluster is not healthy, and when the member stopped: it may have removed itself
// before it could answer.
func (s *Service) Leave(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, s.host.AtLeast(s.Delays.EtcdMember, realLeave))
	defer cancel()

	if err := s.World.Await(limited, func() bool { return s.Up && s.Disk.Etcd != nil }); err != nil {
		return fmt.Errorf("failed to leave cluster: failed to get local etcd member ID: %w", err)
	}

	return s.leaveMembers(ctx, s.Node())
}

func (s *Service) leaveMembers(ctx context.Context, node etcd.Node) error {
	limit := s.host.AtLeast(s.Delays.EtcdLeave, realLeave)

	// Once the member has stopped, only another one can say whether it is removed.
	stopped := false

	for deadline := time.Now().Add(limit); ; {
		via, err := s.AnyMember(ctx)
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

	s.Stop()
	s.Services.Stop("etcd")
	s.World.Update(func() { s.Disk.Etcd = nil })
	node.Wipe()

	return nil
}
