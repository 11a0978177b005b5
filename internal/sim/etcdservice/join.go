package etcdservice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// joinEtcdInTime is joinEtcd that gives up after a while, as Talos does. The service
// is Failed then, takes a Bootstrap like one that still waits, and tries to join
// again only after a reboot.
func (s *Service) joinEtcdInTime(ctx context.Context) (etcd.Node, error) {
	limit := s.Delays.EtcdGiveUp
	if limit == 0 {
		return s.joinEtcd(ctx)
	}

	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	node, err := s.joinEtcd(limited)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("failed to build initial etcd cluster: %w", err)
	}

	return node, err
}

// joinEtcd waits for another member of the cluster and joins it as a learner.
func (s *Service) joinEtcd(ctx context.Context) (etcd.Node, error) {
	asked := false

	for {
		via, err := s.awaitMember(ctx)
		if err != nil {
			return nil, err
		}

		if !asked {
			asked = true

			if err := timing.Pause(ctx, s.Delays.EtcdJoin); err != nil {
				return nil, err
			}
		}

		node, err := s.backend.Join(ctx, s.etcdHost(), via)
		if err == nil && s.host.TakeCrashOnJoin() {
			s.host.Crash()
			<-ctx.Done()

			return nil, ctx.Err()
		}

		if err == nil {
			s.World.Update(func() { s.Disk.Etcd = node })

			return node, nil
		}

		if err := timing.Pause(ctx, kube.JoinRetry); err != nil {
			return nil, err
		}
	}
}

// awaitMember returns a healthy member of another machine of the same cluster.
func (s *Service) awaitMember(ctx context.Context) (etcd.Node, error) {
	for {
		for _, node := range s.otherMembers() {
			if node.Healthy(ctx) == nil {
				return node, nil
			}
		}

		s.World.Lock()
		changed := s.World.Next()
		s.World.Unlock()

		timer := time.NewTimer(kube.HealthPeriod)

		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}

		timer.Stop()

		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// promoteEtcd turns the machine's learner into a voter once it has caught up.
func (s *Service) promoteEtcd(ctx context.Context, node etcd.Node) {
	if timing.Pause(ctx, s.Delays.EtcdPromote) != nil {
		return
	}

	for {
		via, err := s.awaitMember(ctx)
		if err != nil {
			return
		}

		if err = node.Promote(ctx, via); err == nil || errors.Is(err, etcd.ErrMemberNotFound) {
			s.World.Update(func() {})

			return
		}

		if timing.Pause(ctx, promoteRetry) != nil {
			return
		}
	}
}
