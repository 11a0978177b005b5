package sim

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
func (b *boot) joinEtcdInTime(ctx context.Context) (etcd.Node, error) {
	limit := b.m.Delays.EtcdGiveUp
	if limit == 0 {
		return b.joinEtcd(ctx)
	}

	patience, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	node, err := b.joinEtcd(patience)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("failed to build initial etcd cluster: %w", err)
	}

	return node, err
}

// joinEtcd waits for another member of the cluster and joins it as a learner.
func (b *boot) joinEtcd(ctx context.Context) (etcd.Node, error) {
	asked := false

	for {
		via, err := b.awaitMember(ctx)
		if err != nil {
			return nil, err
		}

		if !asked {
			asked = true

			if err := timing.Pause(ctx, b.m.Delays.EtcdJoin); err != nil {
				return nil, err
			}
		}

		node, err := b.sim.backends.etcd.Join(ctx, b.etcdHost(), via)
		if err == nil && b.m.takeCrashOnJoin() {
			b.m.crash()
			<-ctx.Done()

			return nil, ctx.Err()
		}

		if err == nil {
			b.World.Update(func() { b.m.Disk.Etcd = node })

			return node, nil
		}

		if err := timing.Pause(ctx, kube.JoinRetry); err != nil {
			return nil, err
		}
	}
}

// awaitMember returns a healthy member of another machine of the same cluster.
func (b *boot) awaitMember(ctx context.Context) (etcd.Node, error) {
	for {
		for _, node := range b.otherMembers() {
			if node.Healthy(ctx) == nil {
				return node, nil
			}
		}

		b.World.Lock()
		changed := b.World.Next()
		b.World.Unlock()

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
func (b *boot) promoteEtcd(ctx context.Context, node etcd.Node) {
	if timing.Pause(ctx, b.m.Delays.EtcdPromote) != nil {
		return
	}

	for {
		via, err := b.awaitMember(ctx)
		if err != nil {
			return
		}

		if err = node.Promote(ctx, via); err == nil || errors.Is(err, etcd.ErrMemberNotFound) {
			b.World.Update(func() {})

			return
		}

		if timing.Pause(ctx, promoteRetry) != nil {
			return
		}
	}
}
