package sim

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/state"
	clusterres "github.com/siderolabs/talos/pkg/machinery/resources/cluster"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"

	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
)

// joinCluster makes the machine known to the other machines of its configuration's cluster: those with the same
// id, whatever authority their API has (Talos 1.13, cluster.DiscoveryServiceController). The keys of a cluster may
// be rotated.
func (b *boot) joinCluster() error {
	ca := b.OSAuthority()
	if ca == nil {
		return errors.New("configuration has no machine.ca")
	}

	id := string(ca.Crt)
	if identity := b.Config().DiscoveryIdentityConfig(); identity != nil && identity.ClusterID() != "" {
		id = identity.ClusterID()
	}

	b.World.Update(func() {
		c := b.findCluster(id)
		if c == nil {
			c = &cluster{sim: b.sim, world: b.World, members: machined.NewNamespace(clusterres.NamespaceName),
				kube: map[any]kube.Backend{}, endpoints: map[string]bool{}}
			b.sim.clusters[id] = append(b.sim.clusters[id], c)
			b.sim.work.Go(func() { c.runWorkloads(b.sim.ctx) })
		}

		c.boots = append(c.boots, b)
		c.discovers = c.discovers || b.Discovery()
		c.endpoints[b.endpointURL()] = true
		b.cluster = c
	})

	return b.announce()
}

// findCluster is the cluster of that id that the machine finds, nil when it finds none; world is held. Its endpoint
// leads to the control planes that the EndpointSlice default/kubernetes lists (Talos 1.13,
// internal/pkg/etcd/endpoints.go).
func (b *boot) findCluster(id string) *cluster {
	for _, c := range b.sim.clusters[id] {
		if c.endpoints[b.endpointURL()] || c.discovers && b.Discovery() {
			return c
		}
	}

	return nil
}

// endpointURL is the endpoint of the Kubernetes API in the machine's configuration.
func (b *boot) endpointURL() string {
	if section := b.Config().K8sClusterConfig(); section != nil && section.ClusterEndpoint() != nil {
		return section.ClusterEndpoint().String()
	}

	return ""
}

// announce puts the machine into the member list.
func (b *boot) announce() error {
	cfg := b.Config()

	member := clusterres.NewMember(clusterres.NamespaceName, b.Nodename())
	*member.TypedSpec() = clusterres.MemberSpec{
		NodeID: b.NodeID(), Addresses: []netip.Addr{b.m.Address()}, Hostname: b.Hostname(), MachineType: b.MachineType(),
		OperatingSystem: fmt.Sprintf("Talos (%s)", b.TalosVersion()),
	}

	if b.ControlPlane() {
		member.TypedSpec().ControlPlane = &clusterres.ControlPlane{APIServerPort: cfg.K8sAPIServerConfig().APIPort()}
	}

	return machined.Replace(context.Background(), state.WrapCore(b.joined().members), member)
}

// leaveCluster forgets the machine at the end of its boot.
func (b *boot) leaveCluster() {
	b.World.Lock()
	c := b.cluster
	b.World.Unlock()

	if c == nil {
		return
	}

	// The member may be listed already by the next boot under another name; either
	// way there is nothing to do when it is gone.
	_ = c.members.Destroy(context.Background(), resource.NewMetadata(
		clusterres.NamespaceName, clusterres.MemberType, b.Nodename(), resource.VersionUndefined))

	b.World.Update(func() {
		c.boots = slices.DeleteFunc(c.boots, func(other *boot) bool { return other == b })
		b.etcd.Up, b.kubeUp = false, nil
	})
}

// upgradeLock is the lock that an etcd cluster's members share.
func (c *cluster) upgradeLock(group any) *sync.Mutex {
	c.world.Lock()
	defer c.world.Unlock()

	if c.locks == nil {
		c.locks = map[any]*sync.Mutex{}
	}

	if c.locks[group] == nil {
		c.locks[group] = &sync.Mutex{}
	}

	return c.locks[group]
}

// joined is the cluster of the boot, nil in maintenance mode.
func (b *boot) joined() *cluster {
	b.World.Lock()
	defer b.World.Unlock()

	return b.cluster
}

// RepeatReports lets the kubelet of a node recreate its mirror pods after another client changed or deleted one.
func (c *cluster) RepeatReports(node string) {
	c.world.Update(func() {
		for _, b := range c.boots {
			if b.RunsNode(node) {
				b.kubelet.RepeatReports()
			}
		}
	})
}

// signs reports whether a controller manager of the cluster runs; world is held.
func (c *cluster) signs() bool {
	for _, b := range c.boots {
		if b.kubelet.PodReady(k8s.ControllerManagerID) {
			return true
		}
	}

	return false
}
