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
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// etcdService is the etcd system service of one boot.
type etcdService struct {
	Mu     sync.Mutex
	cancel context.CancelFunc
	done   chan struct{}
}

// Start runs etcd. With a request to bootstrap it makes the first member, from a snapshot
// where that asks for one, instead of joining.
func (e *etcdService) Start(b *boot, bootstrap *machine.BootstrapRequest) {
	e.Mu.Lock()
	defer e.Mu.Unlock()

	ctx, cancel := context.WithCancel(b.Ctx)
	done := make(chan struct{})
	e.cancel, e.done = cancel, done

	b.Services.Set("etcd", machined.ServiceStarting, "Starting service")

	b.Spawn(func(context.Context) {
		defer close(done)
		defer cancel()

		if err := b.runEtcd(ctx, bootstrap); err != nil && ctx.Err() == nil {
			b.Services.Set("etcd", machined.ServiceFailed, "Failed to run pre stage: "+err.Error())
		}
	})
}

// Stop ends the service and waits for it; the data stays.
func (e *etcdService) Stop() {
	e.Mu.Lock()
	defer e.Mu.Unlock()

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
	b.Services.Set("etcd", machined.ServiceWaiting, `Waiting for service "cri" to be "up"`)

	if err := b.Services.Await(ctx, "cri"); err != nil {
		return nil
	}

	if b.AwaitTime(ctx, "etcd") != nil {
		return nil
	}

	b.Services.Set("etcd", machined.ServicePreparing, "Running pre state")

	image := b.Config().Cluster().Etcd().Image()
	if err := b.images.PullForService(ctx, image); err != nil {
		return fmt.Errorf("failed to pull image %q: %w", image, err)
	}

	node, fresh, err := b.etcdData(ctx, bootstrap)
	if err != nil {
		return err
	}

	b.Services.Set("etcd", machined.ServicePreparing, "Creating service runner")

	if err := node.Move(b.etcdHost()); err != nil {
		return err
	}

	if err := node.Run(ctx); err != nil {
		return err
	}
	defer node.Halt()

	b.Services.Set("etcd", machined.ServiceRunning, "Started task etcd")

	start := b.m.Delays.EtcdStart
	if bootstrap != nil {
		start -= start / 2
	}

	if fresh && bootstrap == nil {
		b.Spawn(func(context.Context) { b.promoteEtcd(ctx, node) })
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
		waited := timing.Pause(ctx, b.m.Delays.EtcdStart/2)

		if b.Ctx.Err() != nil {
			return nil, false, b.Ctx.Err()
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
	defer machined.Remove(b.Boot, etcdres.NewMember(etcdres.NamespaceName, etcdres.LocalMemberID))
	defer b.setEtcdUp(false)

	b.World.Update(func() { b.etcdRuns = true })
	defer b.World.Update(func() { b.etcdRuns = false })

	for {
		b.World.Lock()
		changed := b.World.Next()
		b.World.Unlock()

		err := node.Healthy(ctx)
		if ctx.Err() != nil {
			return
		}

		b.noteHealth(ctx, node, err)

		period := b.m.Delays.EtcdHealth
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
	b.Services.SetHealth("etcd", err)

	if err == nil {
		b.advertise(ctx, node)
		machined.Modify(b.Boot, etcdres.NewMember(etcdres.NamespaceName, etcdres.LocalMemberID), func(r *etcdres.Member) {
			r.TypedSpec().MemberID = etcd.MemberID(node.ID())
		})
	} else {
		machined.Remove(b.Boot, etcdres.NewMember(etcdres.NamespaceName, etcdres.LocalMemberID))
	}

	b.setEtcdUp(err == nil)
}

// advertise lets the member list follow a changed address; it is tried again with the
// next look at the member's health.
func (b *boot) advertise(ctx context.Context, node etcd.Node) {
	if err := node.Advertise(ctx); err != nil && ctx.Err() == nil {
		b.World.Logf("%s: error updating advertised peers: %v", b.m.Name(), err)
	}
}

// setEtcdUp tells the rest of the site when the member's health changed.
func (b *boot) setEtcdUp(up bool) {
	b.World.Lock()
	defer b.World.Unlock()

	if b.etcdUp != up {
		b.etcdUp = up
		b.World.Notify()
	}
}
