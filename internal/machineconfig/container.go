package machineconfig

import (
	"cmp"
	"net/url"
	"reflect"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// Talos in a container is part of a machine that belongs to somebody else. It validates a configuration as ever,
// and refuses only one in which hostDNS does not forward kube-dns to the host (Talos 1.13, v1alpha1_validation.go);
// everything else that makes no sense there is accepted and has no effect (Talos 1.13, v1alpha1_sequencer.go, and the
// controllers that run in mode container):
//
//   - machine.install, disks, volumes, encryption, the image cache: there are no disks, the volumes are mounted.
//   - machine.sysctls, sysfs, kernel and its modules, udev: the kernel is the host's.
//   - time synchronisation: the clock is the host's.
//   - META, UKI and kernel arguments: nothing boots.
//
// Addresses and routes are the container runtime's. A shared address (VIP) is announced where nobody listens, so the
// API server needs a Service instead.

// The networks of pods and services in a cluster of containers, where nothing else is asked for. The cluster lives
// in pods of another one, which most likely uses the defaults of Kubernetes; traffic to a network that both have
// would stay inside.
const (
	ContainerPodCIDR     = "10.245.0.0/16"
	ContainerServiceCIDR = "10.112.0.0/12"
)

// networks are the networks of pods and services, the defaults where none are given.
func (c Cluster) networks() (pods, services []string) {
	pods, services = c.PodCIDRs, c.ServiceCIDRs

	defaultPods, defaultServices := constants.DefaultIPv4PodNet, constants.DefaultIPv4ServiceNet
	if c.Container {
		defaultPods, defaultServices = ContainerPodCIDR, ContainerServiceCIDR
	}

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

// putContainer makes a generated configuration one for a container. Nothing is installed; before contract v1.12
// Talos is told to leave the network interface to the runtime, as talosctl's docker provisioner does (Talos 1.13,
// provision/providers/docker/node.go). What tunnels lead to, such as those of kubectl port-forward, is called
// localhost where they begin.
func (g *Generator) putContainer(main *v1alpha1.Config) {
	main.MachineConfig.MachineInstall = nil

	if !g.contract.MultidocNetworkConfigSupported() {
		main.MachineConfig.MachineNetwork = &v1alpha1.NetworkConfig{ //nolint:staticcheck // the form before contract v1.12
			NetworkInterfaces: []*v1alpha1.Device{{DeviceInterface: containerInterface, DeviceIgnore: new(true)}}, //nolint:staticcheck // as above
		}
	}

	names := []string{"127.0.0.1", "localhost"}
	if endpoint, err := url.Parse(g.cluster.Endpoint); err == nil {
		names = append(names, endpoint.Hostname())
	}

	putSANs(main, names)
}

// putSANs adds names and addresses to the certificates of a machine.
func putSANs(main *v1alpha1.Config, names []string) {
	main.MachineConfig.MachineCertSANs = withNames(main.MachineConfig.MachineCertSANs, names)

	if api := main.ClusterConfig.APIServerConfig; api != nil {
		api.CertSANs = withNames(api.CertSANs, names)
	}
}

// withNames is a new list with what it did not have.
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
		found.add("machine.install", "an installation", "none for a container", "remove it; Talos is in the image that the container was made from")
	}
}
