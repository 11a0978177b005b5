package sim

import (
	"context"
	"errors"
	"net"

	"github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"k8s.io/client-go/rest"
)

// kubeBackend is what the kube-apiservers of one etcd cluster share: the objects.
//
// Every control-plane machine runs a kube-apiserver of its own, whose version is the tag
// of cluster.apiServer.image in that machine's active configuration. So the API servers of
// one cluster may have different versions at the same time, and they all serve the same
// objects.
type kubeBackend interface {
	// serve starts a machine's kube-apiserver of a version such as "v1.36.2" and returns
	// at once; apiServer.ready says when it answers. It listens on l, which is the
	// machine's own address and belongs to the server from then on, also after an error.
	// An implementation may let several of them share one process per minor version, as
	// long as each answers /version with what runs behind it. An error means that there
	// is no such kube-apiserver; the static pod crashes then.
	serve(l net.Listener, version string) (apiServer, error)
	close() error
}

// apiServer is the kube-apiserver of one machine.
type apiServer interface {
	// also answers on another listener, which is the cluster endpoint's address while the
	// machine holds it, until stop is called, which closes l and cuts its connections.
	also(l net.Listener) (stop func())
	// ready says whether the server answers: what its /readyz says.
	ready(ctx context.Context) error
	// config is the way to this very server for the simulator itself, with all rights.
	// The caller may change what it gets.
	config() *rest.Config
	// stop closes the machine's listener and cuts its connections. The server is not
	// used again.
	stop()
}

// endpointPort is where control-plane machines serve Kubernetes on their own address
// when the configuration says nothing else.
const endpointPort = 6443

// backends are the implementations a site uses for etcd and Kubernetes.
type backends struct {
	etcd etcd.Backend
	kube func(ctx context.Context, b *boot, group any) (kubeBackend, error)
	end  func() error
}

func newBackends(s *Simulator) (backends, error) {
	if s.opts.Assets == "" {
		return backends{etcd: &etcd.Model{World: s.world}, kube: newStandIn, end: func() error { return nil }}, nil
	}

	parts, err := findAssets(s, s.opts.Assets)
	if err != nil {
		return backends{}, err
	}

	return backends{etcd: parts.newEtcd(), kube: parts.newRealKube, end: parts.end}, nil
}

// closeBackends stops every Kubernetes API and etcd.
func (s *Simulator) closeBackends() error {
	s.mu.Lock()
	clusters := make([]*cluster, 0, len(s.clusters))
	for _, c := range s.clusters {
		clusters = append(clusters, c)
	}
	s.mu.Unlock()

	var errs []error

	for _, c := range clusters {
		c.kubeMu.Lock()
		for _, k := range c.kube {
			errs = append(errs, k.close())
		}
		c.kube = nil
		c.kubeMu.Unlock()
	}

	return errors.Join(append(errs, s.backends.etcd.Close(), s.backends.end())...)
}

// kubeOf returns the Kubernetes API of an etcd cluster, starting it if need be.
func (c *cluster) kubeOf(ctx context.Context, b *boot, group any) (kubeBackend, error) {
	c.kubeMu.Lock()
	defer c.kubeMu.Unlock()

	if k := c.kube[group]; k != nil {
		return k, nil
	}

	if c.kube == nil {
		return nil, errors.New("site is closed")
	}

	k, err := c.sim.backends.kube(ctx, b, group)
	if err != nil {
		return nil, err
	}

	c.kube[group] = k

	return k, nil
}

// reap stops the Kubernetes APIs of etcd clusters that have no data left anywhere.
func (c *cluster) reap() {
	groups := map[any]bool{}

	c.sim.mu.Lock()
	for _, m := range c.sim.machines {
		if m.disk.etcd != nil {
			groups[m.disk.etcd.Group()] = true
		}
	}
	c.sim.mu.Unlock()

	c.kubeMu.Lock()
	defer c.kubeMu.Unlock()

	for group, k := range c.kube {
		if groups[group] {
			continue
		}

		delete(c.kube, group)

		if err := k.close(); err != nil {
			c.sim.logf("stop Kubernetes API: %v", err)
		}
	}
}
