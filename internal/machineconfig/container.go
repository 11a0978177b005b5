package machineconfig

import (
	"cmp"
	"net/netip"
	"net/url"
	"reflect"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig/places"
)

// Talos in a container runs on a machine with another owner. It validates a configuration as usual, and refuses
// only one in which hostDNS does not forward kube-dns to the host (Talos 1.13, v1alpha1_validation.go). Other
// settings that do not apply there are accepted and have no effect (Talos 1.13, v1alpha1_sequencer.go, and the
// controllers that run in mode container):
//
//   - machine.install, disks, volumes, encryption, the image cache: there are no disks, the volumes are mounted.
//   - machine.sysctls, sysfs, kernel and its modules, udev: the kernel is the host's.
//   - time synchronization: the clock is the host's.
//   - META, UKI and kernel arguments: nothing boots.
//
// Addresses and routes are the container runtime's. A shared address (VIP) is announced where no system listens,
// so the API server needs a Service instead.

// The networks of pods and services in a cluster of containers, where nothing else is asked for. The cluster lives
// in pods of another one, which most likely uses the defaults of Kubernetes; traffic to a network that both have
// would stay inside.
const (
	ContainerPodCIDR     = "10.245.0.0/16"
	ContainerServiceCIDR = "10.112.0.0/12"
)

// DefaultNetworks are the networks of pods and services where none are given.
func DefaultNetworks(container bool) (pods, services string) {
	if container {
		return ContainerPodCIDR, ContainerServiceCIDR
	}

	return constants.DefaultIPv4PodCIDR, constants.DefaultIPv4ServiceCIDR
}

// networks are the networks of pods and services, the defaults where none are given.
func (c Cluster) networks() (pods, services []string) {
	pods, services = c.PodCIDRs, c.ServiceCIDRs
	defaultPods, defaultServices := DefaultNetworks(c.Container)

	if len(pods) == 0 {
		pods = []string{defaultPods}
	}

	if len(services) == 0 {
		services = []string{defaultServices}
	}

	return pods, services
}

// within is a machine with what follows from its cluster.
func (m Machine) within(c Cluster) Machine {
	if c.Container {
		m.Mode = Container
	}

	m.Mode = cmp.Or(m.Mode, Metal)

	return m
}

// containerInterface is the one that container runtimes bring a container to its network with.
const containerInterface = "eth0"

// putContainer adapts a generated configuration to a container. Nothing is installed. Before contract v1.12, Talos
// gets the setting to leave the network interface to the runtime, as talosctl's docker provisioner does (Talos
// 1.13, provision/providers/docker/node.go). Tunnels, such as those of kubectl port-forward, call their target
// localhost.
func (g *Generator) putContainer(known []config.Document, main *v1alpha1.Config) {
	main.MachineConfig.MachineInstall = nil

	if !g.contract.MultidocNetworkConfigSupported() {
		main.MachineConfig.MachineNetwork = &v1alpha1.NetworkConfig{
			NetworkInterfaces: []*v1alpha1.Device{{DeviceInterface: containerInterface, DeviceIgnore: new(true)}},
		}
	}

	names := []string{"127.0.0.1", "localhost"}
	if endpoint, err := url.Parse(g.cluster.Endpoint); err == nil {
		names = append(names, endpoint.Hostname())
	}

	putSANs(known, names)
}

// loopback is the interface that an address is put on which leads to the container from outside alone.
const loopback = "lo"

// putPeerAddress gives the etcd of a container a stable address, whichever address the container has. Members know
// each other by addresses, and the others learn a new one from a member that has quorum (Talos 1.13,
// etcd/advertised_peer.go). If all members got other addresses at once, they would never find each other again.
//
//   - etcd is announced at an address that the machine has (etcd/spec.go), so the address is put on the loopback
//     interface. This form works with all contracts: Talos 1.13 still takes it, and a document for the interface
//     would replace what a patch says of it.
//   - Without listenSubnets etcd would listen where it is announced, and what is sent there arrives at the address
//     of the container. The networks are all, as without an announced address. A list is an address of each kind
//     that the machine has (etcd/spec.go), and etcd takes another one only when it starts
//     (system/services/etcd.go).
//   - The node must not use the address: addresses of nodes are taken out of validSubnets from left to right, and
//     a list with exclusions alone is empty (k8s/nodeip.go, siderolabs/net FilterIPs). The networks before it are
//     the ones that Talos would choose (k8s/nodeip_config.go).
func (g *Generator) putPeerAddress(known []config.Document, main *v1alpha1.Config, address netip.Addr) {
	own := netip.PrefixFrom(address, address.BitLen()).String()

	links := places.Make[v1alpha1.NetworkDeviceList](known, places.Interfaces)
	*links = append(*links, &v1alpha1.Device{DeviceInterface: loopback, DeviceAddresses: []string{own}})

	*places.Make[[]string](known, places.NodeSubnets) = append(g.nodeNetworks(), "!"+own)
	main.ClusterConfig.EtcdConfig.EtcdAdvertisedSubnets = []string{own}
	main.ClusterConfig.EtcdConfig.EtcdListenSubnets = []string{everyIPv4, everyIPv6}
}

// All addresses of a family.
const (
	everyIPv4 = "0.0.0.0/0"
	everyIPv6 = "::/0"
)

// nodeNetworks are where Talos looks for addresses of nodes: those of the families that services have, in their order.
func (g *Generator) nodeNetworks() []string {
	var networks []string

	_, services := g.cluster.networks()
	for _, cidr := range services {
		if network, err := netip.ParsePrefix(cidr); err == nil && network.Addr().Is6() {
			networks = append(networks, everyIPv6)
		} else {
			networks = append(networks, everyIPv4)
		}
	}

	return networks
}

// putSANs adds names and addresses to the certificates of a machine.
func putSANs(known []config.Document, names []string) {
	for _, f := range []places.Fact{places.MachineSANs, places.APIServerSANs} {
		if at := places.Value[[]string](known, f); at != nil {
			*at = withNames(*at, names)
		}
	}
}

// withNames is a new list with the missing names added.
func withNames(list, names []string) []string {
	out := slices.Clone(list)

	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}

	return out
}

func checkNoInstall(found *problems, install Install) {
	if !reflect.ValueOf(install).IsZero() {
		found.add("machine.install", "an installation", "none for a container",
			"remove it; the container image provides Talos")
	}
}
