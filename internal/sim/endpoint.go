package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/talosop/terraform-provider-talosop/internal/sim/apid"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kubelet"
	"github.com/talosop/terraform-provider-talosop/internal/sim/process"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// Endpoint returns a Kubernetes endpoint URL on its own loopback address, which is a virtual IP for the cluster
// that is configured with it; each call returns another.
//
// A virtual IP is at one control-plane machine at a time, and the API answers there only while that machine's
// kube-apiserver does. It moves when its holder's etcd or kubelet stops, not when only the kube-apiserver is
// replaced or crashes: the election is between the etcd members and does not check the kube-apiserver (Talos 1.13,
// network/operator/vip.go: campaign). The status of static pods that it watches disappears with the kubelet, and
// the machine takes part again even without a running kubelet. See LoadBalancer for an endpoint without such gaps.
func (s *Simulator) Endpoint() (string, error) {
	addr, err := s.addrs.NextEndpoint()
	if err != nil {
		return "", err
	}

	return "https://" + netip.AddrPortFrom(addr, kube.EndpointPort).String(), nil
}

// LoadBalancer returns a Kubernetes endpoint URL like Endpoint. A load balancer there forwards every connection to
// a machine whose kube-apiserver answers, of the cluster that is configured with it.
func (s *Simulator) LoadBalancer() (string, error) {
	addr, err := s.addrs.NextEndpoint()
	if err != nil {
		return "", err
	}

	at := netip.AddrPortFrom(addr, kube.EndpointPort)

	return "https://" + at.String(), s.balance(at)
}

func (s *Simulator) balance(at netip.AddrPort) error {
	l, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp4", at.String())
	if err != nil {
		return fmt.Errorf("listen at endpoint: %w", err)
	}

	f := process.Forward(l, func() (net.Conn, error) { return s.dialAnyServer(at) })

	s.world.Update(func() { s.endpoints.balancers[at] = f })

	return nil
}

// dialAnyServer connects to a kube-apiserver of the cluster whose endpoint this is.
func (s *Simulator) dialAnyServer(at netip.AddrPort) (net.Conn, error) {
	var targets []string

	s.world.Lock()
	for _, c := range slices.Concat(slices.Collect(maps.Values(s.clusters))...) {
		for _, b := range c.boots {
			if vip, ok := b.endpointAddress(); ok && vip == at && b.kubeUp != nil {
				port := b.Config().K8sAPIServerConfig().APIPort()
				targets = append(targets, net.JoinHostPort(b.m.Address().String(), strconv.Itoa(port)))
			}
		}
	}
	s.world.Unlock()

	var errs []error

	for _, target := range targets {
		conn, err := (&net.Dialer{Timeout: process.DialTimeout}).DialContext(s.ctx, "tcp4", target)
		if err == nil {
			return conn, nil
		}

		errs = append(errs, err)
	}

	return nil, errors.Join(append(errs, kubelet.ErrNoServer)...)
}

// DropEndpoint takes an endpoint that Endpoint or LoadBalancer returned off the network,
// until RestoreEndpoint: connections are cut, new ones are refused, and no machine takes a
// virtual IP over. It returns when nothing listens there any more.
func (s *Simulator) DropEndpoint(endpoint string) error {
	at, err := endpointOf(endpoint)
	if err != nil {
		return err
	}

	var balancer *process.Forwarder

	s.world.Update(func() {
		s.endpoints.dropped[at] = true
		balancer = s.endpoints.balancers[at]
		delete(s.endpoints.balancers, at)

		if balancer != nil {
			s.endpoints.balancers[at] = nil
		}
	})

	if balancer != nil {
		balancer.Stop()
	}

	return s.world.Await(s.ctx, func() bool { return s.endpoints.holders[at] == nil })
}

// RestoreEndpoint undoes DropEndpoint. The endpoint answers a moment later.
func (s *Simulator) RestoreEndpoint(endpoint string) error {
	at, err := endpointOf(endpoint)
	if err != nil {
		return err
	}

	balanced := false

	s.world.Update(func() {
		var balancer *process.Forwarder
		if balancer, balanced = s.endpoints.balancers[at]; balancer != nil {
			balanced = false // it was not dropped
		}

		delete(s.endpoints.dropped, at)
	})

	if !balanced {
		return nil
	}

	return s.balance(at)
}

// EndpointHolder is the machine that has the virtual IP of an endpoint, nil when none has.
func (s *Simulator) EndpointHolder(endpoint string) *Machine {
	at, err := endpointOf(endpoint)
	if err != nil {
		return nil // no machine has an address that is no endpoint
	}

	s.world.Lock()
	defer s.world.Unlock()

	if holder := s.endpoints.holders[at]; holder != nil {
		return holder.m
	}

	return nil
}

func endpointOf(endpoint string) (netip.AddrPort, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("parse endpoint: %w", err)
	}

	at, err := netip.ParseAddrPort(u.Host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("parse endpoint %q: %w", endpoint, err)
	}

	return at, nil
}

// stopBalancers closes the load balancers with the site.
func (s *Simulator) stopBalancers() {
	s.world.Lock()
	var all []*process.Forwarder
	for _, f := range s.endpoints.balancers {
		all = append(all, f)
	}
	s.endpoints.balancers = nil
	s.world.Unlock()

	for _, f := range slices.DeleteFunc(all, func(f *process.Forwarder) bool { return f == nil }) {
		f.Stop()
	}
}

// holdEndpoint takes part in the election of the holder of the cluster's virtual IP, if it has one, and serves the
// API there.
func (b *boot) holdEndpoint(ctx context.Context) {
	for ctx.Err() == nil {
		var (
			vip netip.AddrPort
			run int
		)

		if b.World.Await(ctx, func() bool {
			at, ok := b.virtualIP()
			if !ok || !b.etcd.Up || !b.kubelet.Ran || b.sim.endpoints.holders[at] != nil {
				return false
			}

			vip, run = at, b.kubelet.Starts
			b.sim.endpoints.holders[at] = b

			return true
		}) != nil {
			return
		}

		b.serveEndpoint(ctx, vip, run)
		b.World.Update(func() { delete(b.sim.endpoints.holders, vip) })

		_ = timing.Pause(ctx, apid.RebindPause) // others come first; ends with ctx, as the loop does
	}
}

// virtualIP is the cluster's endpoint if that is a virtual IP; world is held.
func (b *boot) virtualIP() (netip.AddrPort, bool) {
	at, ok := b.endpointAddress()
	if !ok || b.sim.endpoints.dropped[at] {
		return at, false
	}

	_, balanced := b.sim.endpoints.balancers[at]

	return at, !balanced
}

// serveEndpoint serves the API at the virtual IP while the machine runs one and holds the
// address.
func (b *boot) serveEndpoint(ctx context.Context, vip netip.AddrPort, run int) {
	resigned := func() bool {
		if run == 0 {
			run = b.kubelet.Starts // it came up meanwhile
		}

		at, ok := b.virtualIP()

		return !ok || at != vip || !b.etcd.Runs || b.kubelet.Starts != run
	}

	for {
		var (
			k    *kube.Client
			over bool
		)

		if b.World.Await(ctx, func() bool {
			k, over = b.kubeUp, resigned()

			return k != nil || over
		}) != nil || over {
			return
		}

		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", vip.String())
		if err != nil {
			if timing.Pause(ctx, apid.RebindPause) != nil {
				return
			}

			continue
		}

		stop := k.Server.Also(l)
		_ = b.World.Await(ctx, func() bool { return b.kubeUp != k || resigned() }) // stop in any case

		stop()
	}
}

// endpointAddress is the cluster endpoint if it is an address of the site that is no
// machine's. world is held.
func (b *boot) endpointAddress() (netip.AddrPort, bool) {
	u := b.Config().K8sClusterConfig().ClusterEndpoint()

	addr, err := netip.ParseAddr(u.Hostname())
	if err != nil || !b.sim.addrs.Prefix.Contains(addr) {
		return netip.AddrPort{}, false
	}

	if slices.ContainsFunc(b.sim.machines, func(m *Machine) bool { return m.Address() == addr }) {
		return netip.AddrPort{}, false
	}

	port := uint64(kube.EndpointPort)
	if u.Port() != "" {
		if port, err = strconv.ParseUint(u.Port(), 10, 16); err != nil {
			return netip.AddrPort{}, false
		}
	}

	return netip.AddrPortFrom(addr, uint16(port)), true
}

// behindEndpoint is the API server that answers at the cluster's endpoint, nil if none does.
// world is held.
func (b *boot) behindEndpoint() *kube.Client {
	at, virtual := b.endpointAddress()
	if b.sim.endpoints.dropped[at] {
		return nil
	}

	host := b.Config().K8sClusterConfig().ClusterEndpoint().Hostname()
	_, balanced := b.sim.endpoints.balancers[at]

	for _, other := range b.cluster.boots {
		switch {
		case other.kubeUp == nil || !b.knows(other):
		case virtual && !balanced && b.sim.endpoints.holders[at] != other:
		case !virtual && b.sim.isMachine(host) && other.m.Address().String() != host:
		default:
			return other.kubeUp
		}
	}

	return nil
}

// isMachine reports whether the host is the address of a machine; mu is held.
func (s *Simulator) isMachine(host string) bool {
	return slices.ContainsFunc(s.machines, func(m *Machine) bool { return m.Address().String() == host })
}

// resolve turns a machine's hostname into its address; anything else is dialed as it is.
func (s *Simulator) resolve(target string) string {
	if net.ParseIP(target) != nil {
		return target
	}

	for _, m := range s.Machines() {
		if strings.EqualFold(m.Hostname(), target) {
			return m.Address().String()
		}
	}

	return target
}
