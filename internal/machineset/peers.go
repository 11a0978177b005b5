package machineset

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// WithPeers is a set whose machines have configured peer addresses, by machine.
func (p Set) WithPeers(peers map[string]netip.Addr) Set {
	if len(peers) == 0 {
		return p
	}

	return p.Each(func(name string, m *Machine) {
		if peer, ok := peers[name]; ok && m.Group.Role == step.ControlPlane {
			m.Config.PeerAddress = peer
		}
	}).withEndpoint()
}

// withEndpoint gives the machines of an isolated set the address of its first control plane for the endpoint, because
// their pods reach no DNS server. The address stays as long as that control plane, so no other control plane changes
// a configuration.
func (p Set) withEndpoint() Set {
	var first netip.Addr

	for _, m := range p.Machines {
		if m.Group.Role == step.ControlPlane && m.Ordinal == 0 {
			first = m.Config.PeerAddress
		}
	}

	if !p.Settings.Isolated || !first.IsValid() {
		return p
	}

	return p.Each(func(_ string, m *Machine) { m.Config.EndpointAddress = first })
}

// Peers are the addresses in the machines' configurations.
func (p Set) Peers() map[string]string {
	peers := map[string]string{}

	for name, m := range p.Machines {
		if m.Config.PeerAddress.IsValid() {
			peers[name] = m.Config.PeerAddress.String()
		}
	}

	return peers
}

// Unaddressed are the control planes of a set that need an address as soon as it is known: those without a recorded
// configuration.
func (p Set) Unaddressed(recorded Record) []string {
	var names []string

	for _, name := range p.Names() {
		m := p.Machines[name]
		if m.Group.Role == step.ControlPlane && !m.Config.PeerAddress.IsValid() &&
			recorded.Machines[name].Access != step.Member {
			names = append(names, name)
		}
	}

	return names
}

// RefuseInnerPeers is an error for peer addresses in a network of the cluster. Talos takes such an address for one of
// a pod or Service, does not advertise etcd at it (Talos 1.13, k8s/address_filter.go and etcd/spec.go), and waits for
// another one forever. Users who may read the host's networks learn it before anything is created.
func (p Set) RefuseInnerPeers(peers map[string]netip.Addr) error {
	pods, services := p.networks()
	inner := []struct {
		attribute, what string
		networks        []netip.Prefix
	}{
		{"pod_cidrs", "pod", pods},
		{"service_cidrs", "service", services},
	}

	for _, name := range slices.Sorted(maps.Keys(peers)) {
		for _, own := range inner {
			for _, network := range own.networks {
				if network.Contains(peers[name]) {
					return wait.Permanent(fmt.Errorf("%s: the %s network %s of the cluster has the address %s in it that the host "+
						"gave the Service of %s for its peers, so that it overlaps with the network of Services of the host: the etcd "+
						"of %[5]s would never start. No machine was configured. Choose a network that the host does not "+
						"use", own.attribute, own.what, network, peers[name], name))
				}
			}
		}
	}

	return nil
}
