package machineconfig

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	coreconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/config/types/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/config/validation"
)

func containerCluster(contract string) Cluster {
	c := testCluster(contract)
	c.Endpoint, c.Container = "https://dev.talos.svc.cluster.local:6443", true

	return c
}

func containerMachine(role Role) Machine {
	return Machine{Role: role, Hostname: "dev-cp-0", CertSANs: []string{"dev-cp-0.talos.svc.cluster.local"}}
}

func containerConfig(tb testing.TB, config Config) coreconfig.Provider {
	tb.Helper()

	provider, err := configloader.NewFromBytes(config.Bytes)
	if err != nil {
		tb.Fatal(err)
	}

	if _, err := provider.ValidateAsClient(runtimeMode(Container), validation.WithLocal()); err != nil {
		tb.Errorf("Talos in a container refuses it: %v", err)
	}

	return provider
}

// TestContainer_underEveryContract checks every contract for what Talos needs in a container and what a
// client needs to reach it there.
func TestContainer_underEveryContract(t *testing.T) {
	for _, contract := range contracts {
		for _, role := range []Role{ControlPlane, Worker} {
			t.Run(contract+" "+string(role), func(t *testing.T) {
				config := containerConfig(t, generated(t, containerCluster(contract), containerMachine(role)))
				main := config.RawV1Alpha1()

				if main.MachineConfig.MachineInstall != nil || config.UnattendedInstallConfig() != nil {
					t.Error("it is to be installed")
				}

				if dns := config.NetworkHostDNSConfig(); !dns.HostDNSEnabled() || !dns.ForwardKubeDNSToHost() {
					t.Error("host DNS does not forward")
				}

				names := []string{"127.0.0.1", "localhost", "dev.talos.svc.cluster.local", "dev-cp-0.talos.svc.cluster.local"}
				if got := main.MachineConfig.MachineCertSANs; !slices.Equal(got, names) {
					t.Errorf("names of the Talos API: %v", got)
				}

				if role == ControlPlane {
					api := config.K8sAPIServerConfig().CertSANs()
					for _, name := range names {
						if n := len(slices.DeleteFunc(slices.Clone(api), func(s string) bool { return s != name })); n != 1 {
							t.Errorf("%s is %d times in %v", name, n, api)
						}
					}
				}

				net := config.K8sNetworkConfig()
				if fmt.Sprint(net.PodCIDRs(), net.ServiceCIDRs()) != "["+ContainerPodCIDR+"] ["+ContainerServiceCIDR+"]" {
					t.Errorf("networks %v %v", net.PodCIDRs(), net.ServiceCIDRs())
				}

				checkContainerNetwork(t, contract, main)
			})
		}
	}
}

// checkContainerNetwork checks who cares for the interface, and the name of the host.
func checkContainerNetwork(t *testing.T, contract string, main *v1alpha1.Config) {
	t.Helper()

	old := contract == "v1.10" || contract == "v1.11"

	var ignored bool
	if network := main.MachineConfig.MachineNetwork; network != nil {
		ignored = slices.ContainsFunc(network.NetworkInterfaces, func(d *v1alpha1.Device) bool { return d.DeviceInterface == "eth0" && d.Ignore() })
	}

	if ignored != old {
		t.Errorf("the interface is ignored: %v", ignored)
	}

	if name := main.Hostname(); old && name != "dev-cp-0" {
		t.Errorf("hostname %q", name)
	}
}

// TestContainerPeerAddress_ofEtcd is what the etcd of a container needs to be known by an address that is not the
// container's.
func TestContainerPeerAddress_ofEtcd(t *testing.T) {
	for _, contract := range contracts {
		for _, test := range []struct {
			address, own string
			services     []string
			nodes        []string
		}{
			{"10.96.1.2", "10.96.1.2/32", nil, []string{"0.0.0.0/0", "!10.96.1.2/32"}},
			{"fd00::1:2", "fd00::1:2/128", []string{"fd01::/112", "10.112.0.0/12"},
				[]string{"::/0", "0.0.0.0/0", "!fd00::1:2/128"}},
		} {
			t.Run(contract+" "+test.address, func(t *testing.T) {
				c, m := containerCluster(contract), containerMachine(ControlPlane)
				m.PeerAddress = netip.MustParseAddr(test.address)

				if test.services != nil {
					c.ServiceCIDRs, c.PodCIDRs = test.services, []string{"fd02::/56", "10.245.0.0/16"}
				}

				config := containerConfig(t, generated(t, c, m))
				main := config.RawV1Alpha1()
				etcd := main.ClusterConfig.EtcdConfig

				if !slices.Equal(etcd.AdvertisedSubnets(), []string{test.own}) ||
					!slices.Equal(etcd.ListenSubnets(), []string{"0.0.0.0/0", "::/0"}) {
					t.Errorf("etcd is announced at %v and listens at %v", etcd.AdvertisedSubnets(), etcd.ListenSubnets())
				}

				if nodes := config.K8sNodeConfig().NodeIP().ValidSubnets(); !slices.Equal(nodes, test.nodes) {
					t.Errorf("the node is looked for in %v", nodes)
				}

				devices := main.MachineConfig.MachineNetwork.NetworkInterfaces
				own := slices.IndexFunc(devices, func(d *v1alpha1.Device) bool {
					return d.DeviceInterface == "lo" && slices.Equal(d.DeviceAddresses, []string{test.own})
				})

				if own < 0 || len(devices) > 2 {
					t.Errorf("the interfaces are %+v", devices)
				}

				checkContainerNetwork(t, contract, main)
			})
		}
	}
}

// TestContainerPeerAddress_onlyForEtcd leaves alone what has no etcd, and does what patches say.
func TestContainerPeerAddress_onlyForEtcd(t *testing.T) {
	m := containerMachine(Worker)
	before := generated(t, containerCluster("v1.13"), m)
	m.PeerAddress = netip.MustParseAddr("10.96.1.2")

	if generated(t, containerCluster("v1.13"), m).Digest != before.Digest {
		t.Error("a worker is configured for etcd")
	}

	m = containerMachine(ControlPlane)
	m.PeerAddress = netip.MustParseAddr("10.96.1.2")
	m.Patches = []string{
		"machine: {network: {interfaces: [{interface: lo, addresses: [192.0.2.1/32]}]}}",
		"apiVersion: v1alpha1\nkind: LinkConfig\nname: lo\nmtu: 9000\n",
	}

	main := containerConfig(t, generated(t, containerCluster("v1.13"), m)).RawV1Alpha1()

	devices := main.MachineConfig.MachineNetwork.NetworkInterfaces
	if len(devices) != 1 || !slices.Equal(devices[0].DeviceAddresses, []string{"10.96.1.2/32", "192.0.2.1/32"}) {
		t.Errorf("the interfaces are %+v", devices)
	}
}

func TestContainer_namesArePerMachine(t *testing.T) {
	c := containerCluster("v1.13")

	generator, err := NewGenerator(c, testBundle(t))
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"dev-cp-0.x", "dev-cp-1.x"} {
		m := containerMachine(ControlPlane)
		m.CertSANs = []string{name}

		config, err := generator.Machine(m)
		if err != nil {
			t.Fatal(err)
		}

		if sans := containerConfig(t, config).RawV1Alpha1().MachineConfig.MachineCertSANs; len(sans) != 4 || sans[3] != name {
			t.Errorf("%s has the names %v", name, sans)
		}
	}
}

// TestContainer_patches shows what Talos accepts and ignores there, and what it refuses.
func TestContainer_patches(t *testing.T) {
	for name, test := range map[string]struct{ patch, wrong string }{
		"an install section": {patch: "machine: {install: {disk: /dev/sda}}"},
		"a shared address":   {patch: "machine: {network: {interfaces: [{interface: eth0, vip: {ip: 10.0.0.9}}]}}"},
		"kernel and sysctls": {patch: "machine: {sysctls: {vm.max_map_count: '262144'}, kernel: {modules: [{name: " +
			"br_netfilter}]}}"},
		"no host DNS": {patch: "machine: {features: {hostDNS: {enabled: false}}}",
			wrong: "hostDNS must be enabled in container mode"},
		"no forwarding of DNS": {patch: "machine: {features: {hostDNS: {forwardKubeDNSToHost: false}}}",
			wrong: "forwardKubeDNSToHost must be enabled in container mode"},
	} {
		t.Run(name, func(t *testing.T) {
			m := containerMachine(ControlPlane)
			m.Patches = []string{test.patch}

			_, err := Generate(containerCluster("v1.13"), m, testBundle(t))

			switch {
			case test.wrong == "" && err != nil:
				t.Error(err)
			case test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)):
				t.Errorf("%v, expected %q", err, test.wrong)
			}
		})
	}
}

func TestContainer_invalidSettings(t *testing.T) {
	c, m := containerCluster("v1.13"), containerMachine(Worker)
	m.Install.Disk, m.CertSANs = "/dev/sda", []string{"https://x"}
	c.ImageCache, c.PodCIDRs = true, []string{"10.112.0.0/16"}

	var fields []string

	for _, err := range []error{ValidateCluster(c), ValidateMachine(c, m)} {
		for _, mistake := range FieldErrors(err) {
			fields = append(fields, mistake.Field)
		}
	}

	if want := []string{"pod_cidrs[0]", "image_cache", "machine.cert_sans[0]", "machine.install"}; !slices.Equal(fields,
		want) {
		t.Errorf("mistakes in %v, expected %v", fields, want)
	}
}
