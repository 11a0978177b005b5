// Package etcdservice is the etcd service of a simulated machine: it bootstraps a cluster, restores one from a
// snapshot, joins, is promoted, watches its member and leaves. Package etcd has the members themselves.
package etcdservice

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	etcdres "github.com/siderolabs/talos/pkg/machinery/resources/etcd"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// Host is what etcd needs of the machine and of its cluster.
type Host interface {
	// ClusterMembers are the members of all machines of the cluster that are on.
	ClusterMembers() []etcd.Node
	// AtLeast is a time that real parts need more of than simulated ones.
	AtLeast(delay, least time.Duration) time.Duration
	// TakeCrashOnJoin says, once, whether the machine is to lose its power as it joins; Crash cuts it.
	TakeCrashOnJoin() bool
	Crash()
}

// Service is the etcd system service of one boot.
type Service struct {
	*machined.Boot

	host    Host
	backend etcd.Backend
	images  *images.Store

	mu     sync.Mutex
	cancel context.CancelFunc
	done   chan struct{}

	// Guarded by World.
	Up   bool // the member is healthy
	Runs bool // the service runs, healthy or not
}

// New is the service of a boot, which does not run yet.
func New(b *machined.Boot, host Host, backend etcd.Backend, store *images.Store) *Service {
	return &Service{Boot: b, host: host, backend: backend, images: store}
}

// Start runs etcd. With a request to bootstrap it makes the first member, from a snapshot
// where that asks for one, instead of joining.
func (s *Service) Start(bootstrap *machine.BootstrapRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()

	ctx, cancel := context.WithCancel(s.Ctx)
	done := make(chan struct{})
	s.cancel, s.done = cancel, done

	s.Services.Set("etcd", machined.ServiceStarting, "Starting service")

	s.Spawn(func(context.Context) {
		defer close(done)
		defer cancel()

		if err := s.runEtcd(ctx, bootstrap); err != nil && ctx.Err() == nil {
			s.Services.Set("etcd", machined.ServiceFailed, "Failed to run pre stage: "+err.Error())
		}
	})
}

// Stop ends the service and waits for it; the data stays.
func (s *Service) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.cancel == nil {
		return
	}

	s.cancel()
	<-s.done
	s.cancel = nil
}

// runEtcd is one run of the service: prepare a data directory if there is none, run
// the member, watch its health.
func (s *Service) runEtcd(ctx context.Context, bootstrap *machine.BootstrapRequest) error {
	s.Services.Set("etcd", machined.ServiceWaiting, `Waiting for service "cri" to be "up"`)

	if err := s.Services.Await(ctx, "cri"); err != nil {
		return nil
	}

	if s.AwaitTime(ctx, "etcd") != nil {
		return nil
	}

	s.Services.Set("etcd", machined.ServicePreparing, "Running pre state")

	image := s.image()
	if err := s.images.PullForService(ctx, image); err != nil {
		return fmt.Errorf("failed to pull image %q: %w", image, err)
	}

	node, fresh, err := s.etcdData(ctx, bootstrap)
	if err != nil {
		return err
	}

	s.Services.Set("etcd", machined.ServicePreparing, "Creating service runner")

	if err := node.Move(s.etcdHost()); err != nil {
		return err
	}

	if err := node.Run(ctx); err != nil {
		return err
	}
	defer node.Halt()

	s.Services.Set("etcd", machined.ServiceRunning, "Started task etcd")

	start := s.Delays.EtcdStart
	if bootstrap != nil {
		start -= start / 2
	}

	if fresh && bootstrap == nil {
		s.Spawn(func(context.Context) { s.promoteEtcd(ctx, node) })
	} else if timing.Pause(ctx, start) != nil {
		return nil
	}

	s.watchMember(ctx, node)

	return nil
}

// etcdData returns the member of the data directory, making one if it is empty.
func (s *Service) etcdData(
	ctx context.Context, bootstrap *machine.BootstrapRequest,
) (node etcd.Node, fresh bool, err error) {
	if node := s.Node(); node != nil {
		return node, false, nil
	}

	if bootstrap != nil {
		// The process starts now. If it is stopped, it has still written its data: that is how a second Bootstrap
		// ends etcd permanently.
		waited := timing.Pause(ctx, s.Delays.EtcdStart/2)

		if s.Ctx.Err() != nil {
			return nil, false, s.Ctx.Err()
		}

		if err := s.foundEtcd(bootstrap); err != nil {
			return nil, false, err
		}

		return s.Node(), true, waited
	}

	node, err = s.joinEtcdInTime(ctx)

	return node, true, err
}

// watchMember updates the service's health and the EtcdMember resource once per period of its check (Talos 1.13,
// services/etcd.go HealthSettings). So they lag behind etcd by that period.
func (s *Service) watchMember(ctx context.Context, node etcd.Node) {
	defer machined.Remove(s.Boot, etcdres.NewMember(etcdres.NamespaceName, etcdres.LocalMemberID))
	defer s.setEtcdUp(false)

	s.World.Update(func() { s.Runs = true })
	defer s.World.Update(func() { s.Runs = false })

	for {
		s.World.Lock()
		changed := s.World.Next()
		s.World.Unlock()

		err := node.Healthy(ctx)
		if ctx.Err() != nil {
			return
		}

		s.noteHealth(ctx, node, err)

		period := s.Delays.EtcdHealth
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

// noteHealth records the result of a check of the member's health.
func (s *Service) noteHealth(ctx context.Context, node etcd.Node, err error) {
	s.Services.SetHealth("etcd", err)

	if err == nil {
		s.advertise(ctx, node)
		machined.Modify(s.Boot, etcdres.NewMember(etcdres.NamespaceName, etcdres.LocalMemberID), func(r *etcdres.Member) {
			r.TypedSpec().MemberID = etcd.MemberID(node.ID())
		})
	} else {
		machined.Remove(s.Boot, etcdres.NewMember(etcdres.NamespaceName, etcdres.LocalMemberID))
	}

	s.setEtcdUp(err == nil)
}

// advertise lets the member list follow a changed address; it is tried again with the
// next look at the member's health.
func (s *Service) advertise(ctx context.Context, node etcd.Node) {
	if err := node.Advertise(ctx); err != nil && ctx.Err() == nil {
		s.World.Logf("%s: error updating advertised peers: %v", s.Name(), err)
	}
}

// setEtcdUp tells the rest of the site when the member's health changed.
func (s *Service) setEtcdUp(up bool) {
	s.World.Lock()
	defer s.World.Unlock()

	if s.Up != up {
		s.Up = up
		s.World.Notify()
	}
}

// LocalMember is the member of the machine, or why it does not answer.
func (s *Service) LocalMember() (etcd.Node, error) {
	if node := s.Node(); node != nil {
		return node, nil
	}

	return nil, etcd.Refused("127.0.0.1")
}
