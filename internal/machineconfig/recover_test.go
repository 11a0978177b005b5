package machineconfig

import (
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

// What SettingsOf reads from a configuration makes that configuration again.
func TestSettingsOf_readsBackWhatGenerateWasGiven(t *testing.T) {
	t.Parallel()

	bundle, err := throwawayBundle()
	if err != nil {
		t.Fatal(err)
	}

	plain := Cluster{Name: "prod", Endpoint: "https://10.0.0.10:6443", KubernetesVersion: "v1.33.1", Contract: "v1.13"}
	disk := Machine{Role: ControlPlane, Mode: Metal,
		Install: Install{Disk: "/dev/sda", Image: "ghcr.io/siderolabs/installer:v1.13.0"}}

	tests := map[string]struct {
		cluster func(*Cluster)
		machine func(*Machine)
	}{
		"plain":  {},
		"worker": {machine: func(m *Machine) { m.Role = Worker }},
		"older contract": {
			cluster: func(c *Cluster) { c.Contract = "v1.12" },
		},
		"network": {cluster: func(c *Cluster) {
			c.PodCIDRs, c.ServiceCIDRs, c.DNSDomain = []string{"10.1.0.0/16", "fd00:1::/56"},
				[]string{"10.2.0.0/16", "fd00:2::/112"}, "prod.local"
			c.CertSANs = []string{"kube.example.org"}
		}},
		"no CNI and no kube-proxy": {cluster: func(c *Cluster) { c.CNI.Name, c.KubeProxy = CNINone, new(false) }},
		"custom CNI": {cluster: func(c *Cluster) {
			c.CNI = CNI{Name: CNICustom, URLs: []string{"https://example.org/cni.yaml"}}
		}},
		"flannel": {cluster: func(c *Cluster) {
			c.CNI = CNI{Name: CNIFlannel, Flannel: &Flannel{ExtraArgs: []string{"--iface=eth1"}, KubeNetworkPolicies: true}}
		}},
		"switches": {cluster: func(c *Cluster) {
			c.AllowSchedulingOnControlPlanes, c.ImageCache, c.Discovery = true, true,
				new(false)
		}},
		"installation": {machine: func(m *Machine) {
			m.Hostname = "cp-1"
			m.Install = Install{
				DiskSelector: &DiskSelector{Size: ">= 100GB", Type: "ssd"}, Wipe: true, Image: "example.org/installer:v1.13.0",
				ExtraKernelArgs: []string{"console=ttyS0"},
			}
		}},
	}

	for name, test := range tests {
		for _, contract := range []string{"v1.13", "v1.14"} {
			t.Run(name+" "+contract, func(t *testing.T) {
				t.Parallel()

				wantCluster, wantMachine := plain, disk
				wantCluster.Contract = contract

				if test.cluster != nil {
					test.cluster(&wantCluster)
				}

				if test.machine != nil {
					test.machine(&wantMachine)
				}

				if contract == "v1.14" {
					wantMachine.Install.ExtraKernelArgs = nil
				}

				gotCluster, gotMachine := recovered(t, wantCluster, wantMachine, bundle)

				// A worker does not get what only concerns control planes.
				if diff := cmp.Diff(wantCluster, gotCluster, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
					t.Errorf("cluster (-want +got):\n%s", diff)
				}

				if diff := cmp.Diff(wantMachine, gotMachine, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
					t.Errorf("machine (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func recovered(t *testing.T, c Cluster, m Machine, bundle *pki.Bundle) (Cluster, Machine) {
	t.Helper()

	config, err := Generate(c, m, bundle)
	if err != nil {
		t.Fatal(err)
	}

	gotCluster, gotMachine, err := SettingsOf(config.Bytes, bundle)
	if err != nil {
		t.Fatal(err)
	}

	return gotCluster, gotMachine
}

// Patches cannot be distinguished from settings; the contract is then that of the form.
func TestSettingsOf_keepsTheContractOfAPatchedConfiguration(t *testing.T) {
	t.Parallel()

	bundle, err := throwawayBundle()
	if err != nil {
		t.Fatal(err)
	}

	for _, contract := range []string{"v1.11", "v1.12", "v1.13", "v1.14"} {
		c := Cluster{Name: "prod", Endpoint: "https://10.0.0.10:6443", KubernetesVersion: "v1.33.1", Contract: contract}
		m := Machine{Role: ControlPlane, Install: Install{Disk: "/dev/sda"},
			Patches: []string{"machine:\n  sysctls:\n    a: b"}}

		got, _ := recovered(t, c, m, bundle)
		if got.Contract != contract {
			t.Errorf("contract %s is read as %s", contract, got.Contract)
		}
	}
}

// A configuration whose cluster has no document is of a contract of fields, whatever other documents it has: those of the
// alpha versions of Talos 1.14, and of people who moved some.
func TestSettingsOf_someDocuments(t *testing.T) {
	t.Parallel()

	bundle, err := throwawayBundle()
	if err != nil {
		t.Fatal(err)
	}

	c := Cluster{Name: "prod", Endpoint: "https://10.0.0.10:6443", KubernetesVersion: "v1.33.1", Contract: "v1.13"}
	m := Machine{Role: ControlPlane, Install: Install{Disk: "/dev/sda"}, Patches: []string{
		"cluster: {apiServer: {$patch: delete}, controllerManager: {$patch: delete}, scheduler: {$patch: delete}, " +
			"proxy: {$patch: delete}}",
		"apiVersion: v1alpha1\nkind: KubeAPIServerConfig\nimage: registry.k8s.io/kube-apiserver:v1.33.1\n---\n" +
			"apiVersion: v1alpha1\nkind: KubeControllerManagerConfig\nimage: registry.k8s.io/kube-controller-manager:v1.33.1\n" +
			"---\napiVersion: v1alpha1\nkind: KubeSchedulerConfig\nimage: registry.k8s.io/kube-scheduler:v1.33.1\n",
	}}

	if got, _ := recovered(t, c, m, bundle); got.Contract != "v1.13" || got.Name != "prod" {
		t.Errorf("the contract is %s of cluster %s", got.Contract, got.Name)
	}
}

// An unfinished upgrade of Kubernetes, and images of other registries, hide neither the version nor the
// contract.
func TestSettingsOf_configurationWithOtherImages(t *testing.T) {
	t.Parallel()

	bundle, err := throwawayBundle()
	if err != nil {
		t.Fatal(err)
	}

	for _, kubelet := range []string{
		"registry.test:5000/kubelet:v1.33.1", "kubelet:v1.33.1-slim", "kubelet:v1.33.1-fat@sha256:" + strings.Repeat("a", 64),
	} {
		for _, contract := range []string{"v1.12", "v1.14"} {
			readsPastImages(t, contract, kubelet, bundle)
		}
	}
}

func readsPastImages(t *testing.T, contract, kubelet string, bundle *pki.Bundle) {
	t.Helper()

	c := Cluster{Name: "prod", Endpoint: "https://10.0.0.10:6443", KubernetesVersion: "v1.33.1", Contract: contract}

	made, err := Generate(c, Machine{Role: ControlPlane, Install: Install{Disk: "/dev/sda"}}, bundle)
	if err != nil {
		t.Fatal(err)
	}

	images := maps.Clone(otherImages)
	images["kubelet"] = kubelet

	cfg, err := WithImages(made.Bytes, images)
	if err != nil {
		t.Fatal(err)
	}

	got, _, err := SettingsOf(cfg, bundle)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(c, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", kubelet, diff)
	}
}

func TestSettingsOf_refusesWhatIsNoConfiguration(t *testing.T) {
	t.Parallel()

	bundle, err := throwawayBundle()
	if err != nil {
		t.Fatal(err)
	}

	for _, text := range []string{"", "hello", "apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\nauto: \"off\"",
		"machine: {}\ncluster: {}"} {
		if _, _, err := SettingsOf([]byte(text), bundle); err == nil {
			t.Errorf("%q gives settings", text)
		}
	}
}
