package talossim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// kubeBackend is the Kubernetes API of one etcd cluster.
type kubeBackend interface {
	// serve answers on the listener until stop is called, which also closes it and
	// cuts its connections.
	serve(l net.Listener) (stop func())
	// ready says whether the API answers.
	ready(ctx context.Context) error
	getNode(ctx context.Context, name string) (*corev1.Node, error)
	createNode(ctx context.Context, node *corev1.Node) error
	// updateNode writes metadata, spec and status.
	updateNode(ctx context.Context, node *corev1.Node) error
	close() error
}

// errNoSuchNode is what getNode returns for a node that does not exist.
var errNoSuchNode = errors.New("node not found")

// endpointPort is where control-plane machines serve Kubernetes on their own address
// when the configuration says nothing else.
const endpointPort = 6443

// backends are the implementations a site uses for etcd and Kubernetes.
type backends struct {
	etcd etcdBackend
	kube func(ctx context.Context, b *boot, group any) (kubeBackend, error)
	end  func() error
}

func newBackends(s *Simulator) (backends, error) {
	if s.opts.Assets == "" {
		return backends{etcd: &modelEtcd{sim: s}, kube: newStandIn, end: func() error { return nil }}, nil
	}

	parts, err := findAssets(s, s.opts.Assets)
	if err != nil {
		return backends{}, err
	}

	return backends{etcd: &realEtcd{parts: parts}, kube: parts.newRealKube, end: parts.end}, nil
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

	return errors.Join(append(errs, s.backends.etcd.close(), s.backends.end())...)
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

// watchEtcd starts the machine's kube-apiserver once its etcd is healthy, and keeps it
// until the boot ends: like the static pod, it stays when etcd loses its quorum.
func (b *boot) watchEtcd(ctx context.Context) {
	if b.sim.await(ctx, func() bool { return b.etcdUp }) != nil || pause(ctx, b.m.delays.APIServer) != nil {
		return
	}

	for ctx.Err() == nil {
		if err := b.serveKubernetes(ctx); err != nil && ctx.Err() == nil {
			b.sim.logf("%s: kube-apiserver: %v", b.m.name, err)
		}

		_ = pause(ctx, healthPeriod) // ends with ctx, as the loop does
	}
}

func (b *boot) serveKubernetes(ctx context.Context) error {
	node := b.etcdNode()
	if node == nil {
		return errors.New("no etcd member")
	}

	k, err := b.joined().kubeOf(ctx, b, node.group())
	if err != nil {
		return err
	}

	port := b.config().Cluster().LocalAPIServerPort()

	own, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort(b.m.Address().String(), strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("listen for Kubernetes: %w", err)
	}

	defer k.serve(own)()

	if err := awaitReady(ctx, k); err != nil {
		return nil
	}

	b.sim.update(func() { b.kubeUp = k })
	b.sim.logf("%s: Kubernetes API on %s", b.m.name, own.Addr())

	b.holdEndpoint(ctx, k)
	b.sim.update(func() { b.kubeUp = nil })

	return nil
}

func awaitReady(ctx context.Context, k kubeBackend) error {
	for k.ready(ctx) != nil {
		if err := pause(ctx, joinRetry); err != nil {
			return err
		}
	}

	return ctx.Err()
}

// holdEndpoint serves the API on the cluster endpoint's address as well, as the holder
// of a virtual IP does: whoever binds the address first has it, the next one takes
// over when it goes. Endpoints outside the site's network are somebody else's.
func (b *boot) holdEndpoint(ctx context.Context, k kubeBackend) {
	endpoint, ok := b.endpoint()
	if !ok {
		<-ctx.Done()

		return
	}

	ticker := time.NewTicker(rebindPause)
	defer ticker.Stop()

	for {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", endpoint.String())
		if err == nil {
			stop := k.serve(l)
			<-ctx.Done()
			stop()

			return
		}

		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// endpoint is the cluster endpoint if it is an address of the site that is no machine's.
func (b *boot) endpoint() (netip.AddrPort, bool) {
	u := b.config().Cluster().Endpoint()

	addr, err := netip.ParseAddr(u.Hostname())
	if err != nil || !b.sim.addrs.prefix.Contains(addr) || b.sim.find(func(m *Machine) bool { return m.Address() == addr }) != nil {
		return netip.AddrPort{}, false
	}

	port := uint64(endpointPort)
	if u.Port() != "" {
		if port, err = strconv.ParseUint(u.Port(), 10, 16); err != nil {
			return netip.AddrPort{}, false
		}
	}

	return netip.AddrPortFrom(addr, uint16(port)), true
}

// reap stops the Kubernetes APIs of etcd clusters that have no data left anywhere.
func (c *cluster) reap() {
	groups := map[any]bool{}

	c.sim.mu.Lock()
	for _, m := range c.sim.machines {
		if m.disk.etcd != nil {
			groups[m.disk.etcd.group()] = true
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

// kubernetes returns a Kubernetes API of the cluster that is up, waiting for one.
func (b *boot) kubernetes(ctx context.Context) (kubeBackend, error) {
	var k kubeBackend

	err := b.sim.await(ctx, func() bool {
		k = b.servedKubernetes()

		return k != nil
	})

	return k, err
}

// anyKubernetes returns a Kubernetes API of the cluster that is up, nil if none is.
func (b *boot) anyKubernetes() kubeBackend {
	b.sim.mu.Lock()
	defer b.sim.mu.Unlock()

	return b.servedKubernetes()
}

// servedKubernetes is anyKubernetes for callers that hold sim.mu.
func (b *boot) servedKubernetes() kubeBackend {
	if b.cluster == nil {
		return nil
	}

	for _, other := range b.cluster.boots {
		if other.kubeUp != nil {
			return other.kubeUp
		}
	}

	return nil
}
