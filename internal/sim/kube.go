package sim

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// backends are the implementations a site uses for etcd and Kubernetes.
type backends struct {
	etcd etcd.Backend
	kube func(site kube.Site, group any) (kube.Backend, error)
	end  func() error
}

func newBackends(s *Simulator) (backends, error) {
	if s.opts.Assets == "" {
		return backends{
			etcd: &etcd.Model{World: s.world, Follow: s.opts.Delays.EtcdVersion}, kube: kube.NewStandIn,
			end: func() error { return nil },
		}, nil
	}

	parts, err := findAssets(s, s.opts.Assets)
	if err != nil {
		return backends{}, err
	}

	b := backends{etcd: parts.newEtcd(), kube: parts.newKube().NewRealKube, end: parts.end}
	if s.opts.OnlyEtcd {
		b.kube = kube.NewStandIn
	}

	return b, nil
}

// closeBackends stops every Kubernetes API and etcd.
func (s *Simulator) closeBackends() error {
	s.world.Lock()
	clusters := make([]*cluster, 0, len(s.clusters))
	for _, found := range s.clusters {
		clusters = append(clusters, found...)
	}
	s.world.Unlock()

	var errs []error

	for _, c := range clusters {
		c.kubeMu.Lock()
		for _, k := range c.kube {
			errs = append(errs, k.Close())
		}
		c.kube = nil
		c.kubeMu.Unlock()
	}

	return errors.Join(append(errs, s.backends.etcd.Close(), s.backends.end())...)
}

// kubeOf returns the Kubernetes API of an etcd cluster, starting it if need be.
func (c *cluster) kubeOf(b *boot, group any) (kube.Backend, error) {
	c.kubeMu.Lock()
	defer c.kubeMu.Unlock()

	if k := c.kube[group]; k != nil {
		return k, nil
	}

	if c.kube == nil {
		return nil, errors.New("site is closed")
	}

	k, err := c.sim.backends.kube(c.kubeSite(b), group)
	if err != nil {
		return nil, err
	}

	c.kube[group] = k

	return k, nil
}

// reap stops the Kubernetes APIs of etcd clusters that have no data left anywhere.
func (c *cluster) reap() {
	groups := map[any]bool{}

	c.world.Lock()
	for _, m := range c.sim.machines {
		if m.Disk.Etcd != nil {
			groups[m.Disk.Etcd.Group()] = true
		}
	}
	c.world.Unlock()

	c.kubeMu.Lock()
	defer c.kubeMu.Unlock()

	for group, k := range c.kube {
		if groups[group] {
			continue
		}

		delete(c.kube, group)

		if err := k.Close(); err != nil {
			c.world.Logf("stop Kubernetes API: %v", err)
		}
	}
}

// Site is what the API servers of the cluster know of their machines; b is the one that
// starts first.
func (c *cluster) kubeSite(b *boot) kube.Site {
	return kube.Site{Ctx: c.sim.ctx, Logf: c.world.Logf, Machines: c, Config: b.Config(), Address: b.m.Address()}
}

// Addresses are those of all machines of the site.
func (c *cluster) Addresses() []netip.Addr {
	var all []netip.Addr
	for _, m := range c.sim.Machines() {
		all = append(all, m.Address())
	}

	return all
}

// Advertised is the address under which others know an address.
func (c *cluster) Advertised(addr netip.Addr) netip.Addr { return c.sim.advertised(addr) }

// SansAt are additional names of the machine at an address, and the address that others know it by.
func (c *cluster) SansAt(host string) []string {
	m := c.sim.find(func(m *Machine) bool { return m.Address().String() == host })
	if m == nil {
		return nil
	}

	sans := []string{m.Advertised().String()}
	if b := m.current(); b != nil {
		if config := b.Config(); machined.Complete(config) {
			sans = append(sans, config.K8sAPIServerConfig().CertSANs()...)
		}
	}

	return sans
}

// UnreadyAt are the readiness checks that fail at the API server of the machine at an address.
func (c *cluster) UnreadyAt(host string) []string {
	m := c.sim.find(func(m *Machine) bool { return m.Address().String() == host })
	if m == nil {
		return nil
	}

	m.sim.world.Lock()
	defer m.sim.world.Unlock()

	return slices.Clone(m.unready)
}

// AwaitKubelet returns nil once the kubelet of a node runs.
func (c *cluster) AwaitKubelet(ctx context.Context, node string) error {
	return c.world.Await(ctx, func() bool {
		for _, b := range c.boots {
			if b.RunsNode(node) {
				return true
			}
		}

		return false
	})
}
