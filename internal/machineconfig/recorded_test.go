package machineconfig

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

// recordedCase is a cluster with a machine whose configuration is recorded for every contract; together with
// everything they use each setting that there is.
type recordedCase struct {
	name    string
	cluster func(tb testing.TB, c *Cluster)
	machine func(m *Machine)
}

var recordedCases = []recordedCase{
	{name: "container", cluster: func(_ testing.TB, c *Cluster) {
		c.Container = true
		c.ServiceCIDRs = []string{"10.112.0.0/20", "fd00:112::/112"}
		c.PodCIDRs = []string{"10.245.0.0/16", "fd00:245::/56"}
		c.CNI = CNI{Name: CNINone}
	}, machine: func(m *Machine) {
		m.Install = Install{}
		m.CertSANs = []string{"node-1.test.svc", "10.1.2.3"}

		if m.Role == ControlPlane {
			m.PeerAddress = netip.MustParseAddr("10.1.2.3")
		}
	}},
	{name: "own-network", cluster: func(tb testing.TB, c *Cluster) {
		c.Endpoint = "https://[fd00::10]:443"
		c.PodCIDRs, c.ServiceCIDRs = []string{"fd00:200::/56"}, []string{"fd00:201::/112"}
		c.CNI = CNI{Name: CNICustom, URLs: []string{"https://cni.test/one.yaml", "https://cni.test/two.yaml"}}
		c.Discovery = new(true)
		c.AirGapped = true
		c.ProvidedPatches = []string{"machine:\n  certSANs: [provided.test]\n"}
		c.Registries = recordedRegistries(tb)
	}, machine: func(m *Machine) {
		m.Install = Install{Image: "ghcr.io/siderolabs/installer:v1.10.0", DiskSelector: &DiskSelector{
			Size: "<= 1TB", Type: "ssd", Model: "M*", Serial: "S?", Modalias: "scsi:*", UUID: "u-1", WWID: "naa.1",
			BusPath: "/pci0000:00/*",
		}}
		m.CertSANs = []string{"node.test"}
	}},
	// Values that YAML can take for others: the library writes quotes around them.
	{name: "quotes", cluster: func(_ testing.TB, c *Cluster) {
		c.Name = "on"
		c.Discovery = new(false)
		c.Registries.Auth = map[string]RegistryAuth{"yes": {Username: "no", Password: "1:20"}, "off": {Auth: "n"}}
		c.CNI = CNI{Name: CNIFlannel, Flannel: &Flannel{ExtraArgs: []string{"off", "y"}}}
		labels := "machine:\n  nodeLabels:\n"
		if c.Contract >= "v1.14" {
			labels = "apiVersion: v1alpha1\nkind: KubeNodeConfig\nlabels:\n"
		}

		c.Patches = []string{labels + "    a: \"on\"\n    b: \"yes\"\n    \"no\": \"N\"\n    e: \"0x1f\"\n" +
			"    g: \"1e3\"\n    h: \"2001-01-01\"\n    i: \"null\"\n", "machine:\n  env:\n    K: \"=\"\n    L: \"a: b\"\n    M: \" x\"\n" +
			"    O: \"0o7\"\n    P: \"1_000\"\n    Q: \"1:20\"\n    R: \"<<\"\n    S: \"~\"\n    T: \"it's off\"\n"}
	}, machine: func(m *Machine) {
		m.Hostname = "off"
	}},
}

func recordedRegistries(tb testing.TB) Registries {
	tb.Helper()

	authority, err := os.ReadFile(filepath.Join("testdata", "registry-ca.pem"))
	if err != nil {
		tb.Fatal(err)
	}

	return Registries{
		Mirrors: map[string]RegistryMirror{"ghcr.io": {Endpoints: []RegistryEndpoint{{URL: "https://mirror.test"}}}},
		TLS:     map[string]RegistryTLS{"mirror.test": {CA: string(authority)}},
	}
}

func TestGenerate_asRecordedForEverySetting(t *testing.T) {
	for _, contract := range contracts {
		for _, role := range []Role{ControlPlane, Worker} {
			for _, recorded := range recordedCases {
				name := contract + "-" + string(role) + "-" + recorded.name
				t.Run(name, func(t *testing.T) {
					c, m := testCluster(contract), testMachine(role)
					recorded.cluster(t, &c)
					recorded.machine(&m)

					compareGolden(t, name, generated(t, c, m))
				})
			}
		}
	}
}
