package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	etcdres "github.com/siderolabs/talos/pkg/machinery/resources/etcd"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// etcdService is the etcd system service of one boot.
type etcdService struct {
	mu     sync.Mutex
	cancel context.CancelFunc
	done   chan struct{}
}

// start runs etcd. With a request to bootstrap it makes the first member, from a snapshot
// where that asks for one, instead of joining.
func (e *etcdService) start(b *boot, bootstrap *machine.BootstrapRequest) {
	e.mu.Lock()
	defer e.mu.Unlock()

	ctx, cancel := context.WithCancel(b.ctx)
	done := make(chan struct{})
	e.cancel, e.done = cancel, done

	b.services.set("etcd", serviceStarting, "Starting service")

	b.spawn(func(context.Context) {
		defer close(done)
		defer cancel()

		if err := b.runEtcd(ctx, bootstrap); err != nil && ctx.Err() == nil {
			b.services.set("etcd", serviceFailed, "Failed to run pre stage: "+err.Error())
		}
	})
}

// stop ends the service and waits for it; the data stays.
func (e *etcdService) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()

	if e.cancel == nil {
		return
	}

	e.cancel()
	<-e.done
	e.cancel = nil
}

// runEtcd is one run of the service: prepare a data directory if there is none, run
// the member, watch its health.
func (b *boot) runEtcd(ctx context.Context, bootstrap *machine.BootstrapRequest) error {
	b.services.set("etcd", serviceWaiting, `Waiting for service "cri" to be "up"`)

	if err := b.services.await(ctx, "cri"); err != nil {
		return nil
	}

	if b.awaitTime(ctx, "etcd") != nil {
		return nil
	}

	b.services.set("etcd", servicePreparing, "Running pre state")

	image := b.config().Cluster().Etcd().Image()
	if err := b.pullForService(ctx, image); err != nil {
		return fmt.Errorf("failed to pull image %q: %w", image, err)
	}

	node, fresh, err := b.etcdData(ctx, bootstrap)
	if err != nil {
		return err
	}

	b.services.set("etcd", servicePreparing, "Creating service runner")

	if err := node.Move(b.etcdHost()); err != nil {
		return err
	}

	if err := node.Run(ctx); err != nil {
		return err
	}
	defer node.Halt()

	b.services.set("etcd", serviceRunning, "Started task etcd")

	start := b.m.delays.EtcdStart
	if bootstrap != nil {
		start -= start / 2
	}

	if fresh && bootstrap == nil {
		b.spawn(func(context.Context) { b.promoteEtcd(ctx, node) })
	} else if timing.Pause(ctx, start) != nil {
		return nil
	}

	b.watchMember(ctx, node)

	return nil
}

// etcdData returns the member of the data directory, making one if it is empty.
func (b *boot) etcdData(ctx context.Context, bootstrap *machine.BootstrapRequest) (node etcd.Node, fresh bool, err error) {
	if node := b.etcdNode(); node != nil {
		return node, false, nil
	}

	if bootstrap != nil {
		// The process is on its way now. If it is stopped, it has written its data
		// all the same: that is how a second Bootstrap ends etcd for good.
		waited := timing.Pause(ctx, b.m.delays.EtcdStart/2)

		if b.ctx.Err() != nil {
			return nil, false, b.ctx.Err()
		}

		if err := b.foundEtcd(bootstrap); err != nil {
			return nil, false, err
		}

		return b.etcdNode(), true, waited
	}

	node, err = b.joinEtcdInTime(ctx)

	return node, true, err
}

// watchMember keeps the service's health and the EtcdMember resource as up to date as the
// period of its check lets them be (Talos 1.13, services/etcd.go HealthSettings): whatever
// happens to etcd, what they say is that old.
func (b *boot) watchMember(ctx context.Context, node etcd.Node) {
	defer remove(b, etcdres.NewMember(etcdres.NamespaceName, etcdres.LocalMemberID))
	defer b.setEtcdUp(false)

	b.sim.update(func() { b.etcdRuns = true })
	defer b.sim.update(func() { b.etcdRuns = false })

	for {
		b.sim.mu.Lock()
		changed := b.sim.world.Next()
		b.sim.mu.Unlock()

		err := node.Healthy(ctx)
		if ctx.Err() != nil {
			return
		}

		b.noteHealth(ctx, node, err)

		period := b.m.delays.EtcdHealth
		if period != 0 {
			changed = nil
		} else {
			period = kube.HealthPeriod
		}

		timer := time.NewTimer(period)

		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}

		timer.Stop()
	}
}

// noteHealth writes down what a check of the member's health found.
func (b *boot) noteHealth(ctx context.Context, node etcd.Node, err error) {
	b.services.setHealth("etcd", err)

	if err == nil {
		b.advertise(ctx, node)
		modify(b, etcdres.NewMember(etcdres.NamespaceName, etcdres.LocalMemberID), func(r *etcdres.Member) {
			r.TypedSpec().MemberID = etcd.MemberID(node.ID())
		})
	} else {
		remove(b, etcdres.NewMember(etcdres.NamespaceName, etcdres.LocalMemberID))
	}

	b.setEtcdUp(err == nil)
}

// advertise lets the member list follow a changed address; it is tried again with the
// next look at the member's health.
func (b *boot) advertise(ctx context.Context, node etcd.Node) {
	if err := node.Advertise(ctx); err != nil && ctx.Err() == nil {
		b.sim.logf("%s: error updating advertised peers: %v", b.m.name, err)
	}
}

// setEtcdUp tells the rest of the site when the member's health changed.
func (b *boot) setEtcdUp(up bool) {
	b.sim.mu.Lock()
	defer b.sim.mu.Unlock()

	if b.etcdUp != up {
		b.etcdUp = up
		b.sim.notify()
	}
}
