package machineconfig

import (
	"net/netip"
	"slices"
	"testing"
)

// Facts are the same whether an attribute, a patch of the main document or a document says them.
func TestFacts_ofAttributesPatchesAndDocuments(t *testing.T) {
	t.Parallel()

	const (
		factoryImage = "factory.talos.dev/metal-installer/" +
			"ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515:v1.13.0"
		cniNone    = "cluster: {network: {cni: {name: none}}}\n"
		noFlannel  = "apiVersion: v1alpha1\nkind: KubeFlannelCNIConfig\n$patch: delete\n"
		customDocs = noFlannel + "---\napiVersion: v1alpha1\nkind: KubeExternalManifestConfig\nname: custom-cni\n" +
			"url: https://example.org/cni.yaml\n"
	)

	fields, documents := contracts[:4], contracts[4:]

	for name, test := range map[string]struct {
		contracts []string
		cluster   func(*Cluster)
		machine   func(*Machine)
		patch     string
		want      func(Facts) bool
	}{
		"flannel is the default": {contracts: contracts, want: func(f Facts) bool { return f.CNI == CNIFlannel }},
		"none by attribute": {contracts: contracts, cluster: func(c *Cluster) { c.CNI.Name = CNINone },
			want: func(f Facts) bool { return f.CNI == CNINone }},
		"custom by attribute": {contracts: contracts,
			cluster: func(c *Cluster) { c.CNI = CNI{Name: CNICustom, URLs: []string{"https://example.org/cni.yaml"}} },
			want:    func(f Facts) bool { return f.CNI == CNICustom }},
		"none by a patch":            {contracts: fields, patch: cniNone, want: func(f Facts) bool { return f.CNI == CNINone }},
		"none by a deleted document": {contracts: documents, patch: noFlannel, want: func(f Facts) bool { return f.CNI == CNINone }},
		"custom by documents":        {contracts: documents, patch: customDocs, want: func(f Facts) bool { return f.CNI == CNICustom }},
		"installer by attribute": {contracts: contracts, machine: func(m *Machine) { m.Install.Image = factoryImage },
			want: func(f Facts) bool { return f.Installer == factoryImage }},
		"installer by a patch": {contracts: fields, patch: "machine: {install: {image: \"" + factoryImage + "\"}}\n",
			want: func(f Facts) bool { return f.Installer == factoryImage && f.Disk.String() == "/dev/sda" }},
		"installer by a document": {contracts: documents,
			patch: "apiVersion: v1alpha1\nkind: UnattendedInstallConfig\ninstaller: {image: \"" + factoryImage + "\"}\n",
			want: func(f Facts) bool {
				return f.Installer == factoryImage && f.Disk.String() == `disk.dev_path == "/dev/sda"`
			}},
		"networks by attribute": {contracts: contracts,
			cluster: func(c *Cluster) {
				c.PodCIDRs, c.ServiceCIDRs, c.DNSDomain = []string{"10.1.0.0/16"}, []string{"10.2.0.0/16"}, "a.b"
			},
			want: hasNetworks},
		"networks by a patch": {contracts: fields,
			patch: "cluster: {network: {podSubnets: [10.1.0.0/16], serviceSubnets: [10.2.0.0/16], dnsDomain: a.b}}\n", want: hasNetworks},
		"networks by a document": {contracts: documents, patch: "apiVersion: v1alpha1\nkind: KubeNetworkConfig\n" +
			"podSubnets: [10.1.0.0/16]\nserviceSubnets: [10.2.0.0/16]\ndnsDomain: a.b\n", want: hasNetworks},
		"virtual IP by a patch": {contracts: fields,
			patch: "machine: {network: {interfaces: [{interface: eth0, dhcp: true, vip: {ip: 10.0.0.5}}]}}\n", want: hasVirtualIP},
		"virtual IP on a VLAN": {contracts: fields,
			patch: "machine: {network: {interfaces: [{interface: eth0, vlans: [{vlanId: 5, vip: {ip: 10.0.0.5}}]}]}}\n",
			want:  hasVirtualIP},
		"virtual IP by a document": {contracts: contracts[2:],
			patch: "apiVersion: v1alpha1\nkind: Layer2VIPConfig\nname: 10.0.0.5\nlink: eth0\n", want: hasVirtualIP},
		"SANs": {contracts: contracts, cluster: func(c *Cluster) { c.CertSANs = []string{"api.test.example"} },
			want: func(f Facts) bool { return slices.Contains(f.CertSANs, "api.test.example") }},
		"labels and taints by a patch": {contracts: fields,
			patch: "machine: {nodeLabels: {rack: b2}, nodeTaints: {gpu: \"only:NoSchedule\"}}\n", want: hasLabels},
		"labels and taints by a document": {contracts: documents, patch: "apiVersion: v1alpha1\nkind: KubeNodeConfig\n" +
			"labels: {rack: b2}\ntaints: {gpu: \"only:NoSchedule\"}\n", want: hasLabels},
		"node name by a patch": {contracts: fields[:2], patch: "machine: {network: {hostname: Node-1.lab}}\n",
			want: func(f Facts) bool { return f.NodeName == "node-1" }},
	} {
		for _, contract := range test.contracts {
			c, m := testCluster(contract), testMachine(ControlPlane)
			if test.cluster != nil {
				test.cluster(&c)
			}

			if test.machine != nil {
				test.machine(&m)
			}

			if test.patch != "" {
				m.Patches = []string{test.patch}
			}

			config, err := Generate(c, m, testBundle(t))
			if err != nil {
				t.Errorf("%s with contract %s: %v", name, contract, err)

				continue
			}

			if !test.want(config.Facts) {
				t.Errorf("%s with contract %s: %+v", name, contract, config.Facts)
			}
		}
	}
}

func hasNetworks(f Facts) bool {
	return slices.Equal(f.PodCIDRs, []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}) &&
		slices.Equal(f.ServiceCIDRs, []netip.Prefix{netip.MustParsePrefix("10.2.0.0/16")}) && f.DNSDomain == "a.b"
}

func hasLabels(f Facts) bool { return f.Labels["rack"] == "b2" && f.Taints["gpu"] == "only:NoSchedule" }

func hasVirtualIP(f Facts) bool {
	return slices.Equal(f.VirtualIPs, []netip.Addr{netip.MustParseAddr("10.0.0.5")})
}

// The networks of pods and services are apart, and the endpoint, virtual IPs and SANs outside of them, in either form.
func TestGenerate_refusesAddressesInNetworks(t *testing.T) {
	t.Parallel()

	const (
		fieldNetworks    = "cluster: {network: {podSubnets: [10.0.0.0/16]}}\n"
		documentNetworks = "apiVersion: v1alpha1\nkind: KubeNetworkConfig\npodSubnets: [10.0.0.0/16]\n"
		fieldOverlap     = "cluster: {network: {podSubnets: [10.96.0.0/13]}}\n"
		documentOverlap  = "apiVersion: v1alpha1\nkind: KubeNetworkConfig\nserviceSubnets: [10.244.128.0/20]\n"
		fieldVIP         = "machine: {network: {interfaces: [{interface: eth0, dhcp: true, vip: {ip: 10.96.0.5}}]}}\n"
		documentVIP      = "apiVersion: v1alpha1\nkind: Layer2VIPConfig\nname: 10.96.0.5\nlink: eth0\n"
		san              = "machine: {certSANs: [10.244.3.3]}\n"
	)

	for name, test := range map[string]struct {
		contract string
		change   func(*Cluster, *Machine)
		fields   []string
	}{
		"networks by a patch":    {"v1.13", func(c *Cluster, _ *Machine) { c.Patches = []string{"machine: {sysctls: {a: b}}\n", fieldNetworks} }, []string{"patches[1]"}},
		"networks by a document": {"v1.14", func(_ *Cluster, m *Machine) { m.PoolPatches = []string{documentNetworks} }, []string{"pool.patches[0]"}},
		"virtual IP by a patch":  {"v1.13", func(_ *Cluster, m *Machine) { m.Patches = []string{fieldVIP} }, []string{"machine.patches[0]"}},
		"virtual IP by a document": {"v1.14", func(_ *Cluster, m *Machine) { m.Patches = []string{documentVIP} },
			[]string{"machine.patches[0]"}},
		"SAN by a patch":   {"v1.13", func(_ *Cluster, m *Machine) { m.Patches = []string{san} }, []string{"machine.patches[0]"}},
		"SAN by attribute": {"v1.14", func(c *Cluster, _ *Machine) { c.CertSANs = []string{"10.244.3.3"} }, []string{"pod_cidrs", "pod_cidrs"}},
		"endpoint":         {"v1.14", func(c *Cluster, _ *Machine) { c.PodCIDRs = []string{"10.0.0.0/16"} }, []string{"pod_cidrs[0]"}},
		"pods among the services": {"v1.13", func(c *Cluster, _ *Machine) { c.Patches = []string{"machine: {sysctls: {a: b}}\n", fieldOverlap} },
			[]string{"patches[1]"}},
		"services among the pods": {"v1.14", func(_ *Cluster, m *Machine) { m.PoolPatches = []string{documentOverlap} },
			[]string{"pool.patches[0]"}},
		"overlap that another patch ends": {"v1.13", func(c *Cluster, m *Machine) {
			c.Patches, m.Patches = []string{fieldOverlap}, []string{"cluster: {network: {serviceSubnets: [10.112.0.0/12]}}\n"}
		}, nil},
		"moved out by patch": {"v1.13", func(c *Cluster, _ *Machine) {
			c.Endpoint, c.Patches = "https://10.244.0.1:6443", []string{fieldNetworks}
		}, nil},
	} {
		c, m := testCluster(test.contract), testMachine(ControlPlane)
		test.change(&c, &m)

		var fields []string

		_, err := Generate(c, m, testBundle(t))
		for _, mistake := range FieldErrors(err) {
			fields = append(fields, mistake.Field)
		}

		if !slices.Equal(fields, test.fields) || (err == nil) != (test.fields == nil) {
			t.Errorf("%s: %v at %v", name, err, fields)
		}
	}
}
