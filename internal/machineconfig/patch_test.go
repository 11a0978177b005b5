package machineconfig

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// with generates a control-plane configuration with patches of the cluster.
func with(t *testing.T, contract string, patches ...string) (string, error) {
	t.Helper()

	c := testCluster(contract)
	c.Patches = patches

	config, err := Generate(c, testMachine(ControlPlane), testBundle(t))

	return string(config.Bytes), err
}

// changesBy lists what patches change in a configuration without them.
func changesBy(t *testing.T, contract string, patches ...string) []string {
	t.Helper()

	before, err := with(t, contract)
	if err != nil {
		t.Fatal(err)
	}

	after, err := with(t, contract, patches...)
	if err != nil {
		t.Fatal(err)
	}

	changes, err := Diff([]byte(before), []byte(after))
	if err != nil {
		t.Fatal(err)
	}

	var lines []string
	for _, change := range changes {
		lines = append(lines, change.String())
	}

	return lines
}

func TestPatches_areMergedInOrder(t *testing.T) {
	for _, test := range []struct {
		name, contract string
		patches        []string
		want           []string
	}{
		{"none", "v1.13", nil, nil},
		{"an empty one", "v1.13", []string{"", " \n", "# nothing\n", "---\n", "null"}, nil},
		{"YAML", "v1.13", []string{"machine:\n  sysctls:\n    a: \"1\"\n"}, []string{`+ v1alpha1: machine.sysctls.a = "1"`}},
		{"JSON", "v1.13", []string{`{"machine":{"sysctls":{"a":"1"}}}`}, []string{`+ v1alpha1: machine.sysctls.a = "1"`}},
		{"later ones win", "v1.13", []string{"machine: {sysctls: {a: \"1\", b: x}}", "machine: {sysctls: {a: \"2\"}}"},
			[]string{
				`+ v1alpha1: machine.sysctls.a = "2"`, `+ v1alpha1: machine.sysctls.b = "x"`,
			}},
		{"lists append", "v1.13", []string{"machine: {certSANs: [a.test]}", "machine: {certSANs: [b.test]}"}, []string{
			"- v1alpha1: machine.certSANs = []", `+ v1alpha1: machine.certSANs[0] = "a.test"`,
			`+ v1alpha1: machine.certSANs[1] = "b.test"`,
		}},
		{"several documents, some new", "v1.13", []string{
			"machine:\n  sysctls:\n    a: \"1\"\n---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: " +
				"EPHEMERAL\nprovisioning:\n  maxSize: 50GiB\n---\n# nothing\n",
		}, []string{
			`+ v1alpha1: machine.sysctls.a = "1"`, `+ VolumeConfig/EPHEMERAL: provisioning.maxSize = "50GiB"`,
		}},
		{"a delete", "v1.13", []string{"cluster:\n  apiServer:\n    auditPolicy:\n      $patch: delete\n"}, []string{
			`- v1alpha1: cluster.apiServer.auditPolicy.apiVersion = "audit.k8s.io/v1"`,
			`- v1alpha1: cluster.apiServer.auditPolicy.kind = "Policy"`,
			`- v1alpha1: cluster.apiServer.auditPolicy.rules[0].level = "Metadata"`,
		}},
		{"JSON 6902 on one document", "v1.11",
			[]string{`[{"op":"replace","path":"/machine/install/disk","value":"/dev/vda"},{"op":"remove","path":"/cluster/apiServer/auditPolicy/rules/0/level"}]`}, []string{
				`- v1alpha1: cluster.apiServer.auditPolicy.rules[0].level = "Metadata"`,
				`+ v1alpha1: cluster.apiServer.auditPolicy.rules[0] = {}`,
				`~ v1alpha1: machine.install.disk: "/dev/sda" -> "/dev/vda"`,
			}},
		{"JSON 6902 in YAML, then a merge", "v1.10",
			[]string{"- op: add\n  path: /machine/sysctls\n  value: {a: \"1\"}\n", "machine: {sysctls: {b: \"2\"}}"}, []string{
				`+ v1alpha1: machine.sysctls.a = "1"`, `+ v1alpha1: machine.sysctls.b = "2"`,
			}},
		{"an unknown document", "v1.13", []string{"apiVersion: v1alpha1\nkind: KubeFuture\na: 1\n"},
			[]string{"+ KubeFuture: a = (sensitive value)"}},
		{"labels and taints", "v1.13", []string{"machine:\n  nodeLabels: {rack: r1}\n  nodeTaints: {dedicated: " +
			"\"db:NoSchedule\"}\n"}, []string{
			`+ v1alpha1: machine.nodeLabels.rack = "r1"`, `+ v1alpha1: machine.nodeTaints.dedicated = "db:NoSchedule"`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(sorted(test.want), sorted(changesBy(t, test.contract, test.patches...))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestGenerate_hostnames(t *testing.T) {
	const (
		document = "apiVersion: v1alpha1\nkind: HostnameConfig\n"
		field    = "machine:\n  network:\n    hostname: by-field\n"
	)

	for _, test := range []struct {
		name, contract, hostname string
		patches                  []string
		want                     []string
	}{
		{"generated", "v1.13", "", nil, nil},
		{"a setting", "v1.13", "by-setting", nil,
			[]string{`~ HostnameConfig: auto: "stable" -> "off"`, `+ HostnameConfig: hostname = "by-setting"`}},
		{"a setting, before 1.12", "v1.11", "by-setting", nil,
			[]string{`+ v1alpha1: machine.network.hostname = "by-setting"`, "- v1alpha1: machine.network = {}"}},
		{"a document without auto", "v1.13", "", []string{document + "hostname: by-document\n"},
			[]string{`~ HostnameConfig: auto: "stable" -> "off"`, `+ HostnameConfig: hostname = "by-document"`}},
		{"a document with auto off", "v1.12", "", []string{document + "hostname: by-document\nauto: off\n"},
			[]string{`~ HostnameConfig: auto: "stable" -> "off"`, `+ HostnameConfig: hostname = "by-document"`}},
		{"the field of older versions", "v1.13", "", []string{field},
			[]string{`- HostnameConfig: auto = "stable"`, `+ v1alpha1: machine.network.hostname = "by-field"`}},
		{"the field, before 1.12", "v1.10", "", []string{field},
			[]string{`+ v1alpha1: machine.network.hostname = "by-field"`, "- v1alpha1: machine.network = {}"}},
		{"a deleted document and the field", "v1.13", "", []string{document + "$patch: delete\n---\n" + field},
			[]string{`- HostnameConfig: auto = "stable"`, `+ v1alpha1: machine.network.hostname = "by-field"`}},
		{"a setting and a patch", "v1.13", "by-setting", []string{document + "hostname: by-document\n"},
			[]string{`~ HostnameConfig: auto: "stable" -> "off"`, `+ HostnameConfig: hostname = "by-document"`}},
		{"a setting and a patch of both", "v1.13", "by-setting",
			[]string{document + "hostname: by-document\nauto: stable\n"},
			[]string{`~ HostnameConfig: auto: "stable" -> "off"`, `+ HostnameConfig: hostname = "by-document"`}},
		{"a setting and Talos's own", "v1.13", "by-setting", []string{document + "auto: stable\n"}, nil},
		{"a setting and the field of older versions", "v1.13", "by-setting", []string{field},
			[]string{`- HostnameConfig: auto = "stable"`, `+ v1alpha1: machine.network.hostname = "by-field"`}},
		{"a setting and the field, before 1.12", "v1.11", "by-setting", []string{field},
			[]string{`+ v1alpha1: machine.network.hostname = "by-field"`, "- v1alpha1: machine.network = {}"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := generated(t, testCluster(test.contract), testMachine(Worker))
			m := testMachine(Worker)
			m.Hostname, m.Patches = test.hostname, test.patches

			// Twice with one generator: giving way must not change the cached patch.
			generator, err := NewGenerator(testCluster(test.contract), testBundle(t))
			if err != nil {
				t.Fatal(err)
			}

			for range 2 {
				after, err := generator.Machine(m)
				if err != nil {
					t.Fatal(err)
				}

				changes, err := Diff(before.Bytes, after.Bytes)
				if err != nil {
					t.Fatal(err)
				}

				if diff := cmp.Diff(sorted(test.want), sorted(lines(changes))); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}

func TestGenerate_airGapped(t *testing.T) {
	for _, test := range []struct {
		name, contract string
		discovery      *bool
		patches        []string
		want           []string
	}{
		{"from 1.12", "v1.13", nil, nil,
			[]string{`~ v1alpha1: cluster.discovery.enabled: true -> false`, `+ TimeSyncConfig: enabled = false`}},
		{"before 1.12", "v1.11", nil, nil,
			[]string{`~ v1alpha1: cluster.discovery.enabled: true -> false`, `+ v1alpha1: machine.time.disabled = true`}},
		{"with discovery of its own", "v1.13", new(true), nil, []string{`+ TimeSyncConfig: enabled = false`}},
		{"with a time server", "v1.13", nil,
			[]string{"apiVersion: v1alpha1\nkind: TimeSyncConfig\nntp: {servers: [ntp.test]}\n"}, []string{
				`~ v1alpha1: cluster.discovery.enabled: true -> false`, `+ TimeSyncConfig: ntp.servers[0] = "ntp.test"`,
			}},
		{"with a time server in the older form", "v1.13", nil, []string{"machine: {time: {servers: [ntp.test]}}"}, []string{
			`~ v1alpha1: cluster.discovery.enabled: true -> false`, `+ v1alpha1: machine.time.servers[0] = "ntp.test"`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := testCluster(test.contract)
			before := generated(t, c, testMachine(Worker))

			c.AirGapped, c.Discovery, c.Patches = true, test.discovery, test.patches

			changes, err := Diff(before.Bytes, generated(t, c, testMachine(Worker)).Bytes)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(sorted(test.want), sorted(lines(changes))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestGenerate_eachSettingAlone(t *testing.T) {
	for _, test := range []struct {
		name     string
		contract string
		change   func(*Cluster, *Machine)
		want     []string
	}{
		{"kube-proxy off", "v1.13", func(c *Cluster, _ *Machine) { c.KubeProxy = new(false) },
			[]string{"+ v1alpha1: cluster.proxy.disabled = true"}},
		{"scheduling", "v1.13", func(c *Cluster, _ *Machine) { c.AllowSchedulingOnControlPlanes = true },
			[]string{"+ v1alpha1: cluster.allowSchedulingOnControlPlanes = true"}},
		{"no discovery", "v1.13", func(c *Cluster, _ *Machine) { c.Discovery = new(false) },
			[]string{"~ v1alpha1: cluster.discovery.enabled: true -> false"}},
		{"no pod network", "v1.13", func(c *Cluster, _ *Machine) { c.CNI.Name = CNINone },
			[]string{`+ v1alpha1: cluster.network.cni.name = "none"`}},
		{"a pod network of one's own", "v1.13", func(c *Cluster, _ *Machine) {
			c.CNI = CNI{Name: CNICustom, URLs: []string{"https://example.com/cni.yaml"}}
		}, []string{`+ v1alpha1: cluster.network.cni.name = "custom"`,
			`+ v1alpha1: cluster.network.cni.urls[0] = "https://example.com/cni.yaml"`}},
		{"flannel's options", "v1.13", func(c *Cluster, _ *Machine) {
			c.CNI = CNI{Name: CNIFlannel, Flannel: &Flannel{ExtraArgs: []string{"--iface=eth1"}, KubeNetworkPolicies: true}}
		}, []string{
			`+ v1alpha1: cluster.network.cni.flannel.extraArgs[0] = "--iface=eth1"`,
			`+ v1alpha1: cluster.network.cni.flannel.kubeNetworkPoliciesEnabled = true`,
			`+ v1alpha1: cluster.network.cni.name = "flannel"`,
		}},
		{"IPv6 only", "v1.13", func(c *Cluster, _ *Machine) {
			c.PodCIDRs, c.ServiceCIDRs = []string{"fd00:10::/56"}, []string{"fd00:20::/112"}
		}, []string{
			`~ v1alpha1: cluster.network.podSubnets[0]: "10.244.0.0/16" -> "fd00:10::/56"`,
			`~ v1alpha1: cluster.network.serviceSubnets[0]: "10.96.0.0/12" -> "fd00:20::/112"`,
		}},
		{"dual stack", "v1.13", func(c *Cluster, _ *Machine) {
			c.PodCIDRs, c.ServiceCIDRs = []string{"10.244.0.0/16", "fd00:10::/56"}, []string{"10.96.0.0/12", "fd00:20::/112"}
		}, []string{`+ v1alpha1: cluster.network.podSubnets[1] = "fd00:10::/56"`,
			`+ v1alpha1: cluster.network.serviceSubnets[1] = "fd00:20::/112"`}},
		{"a DNS domain", "v1.13", func(c *Cluster, _ *Machine) { c.DNSDomain = "k8s.test" },
			[]string{`~ v1alpha1: cluster.network.dnsDomain: "cluster.local" -> "k8s.test"`}},
		{"certificate names", "v1.13", func(c *Cluster, _ *Machine) { c.CertSANs = []string{"api.test"} }, []string{
			`+ v1alpha1: cluster.apiServer.certSANs[0] = "api.test"`, `+ v1alpha1: machine.certSANs[0] = "api.test"`,
			"- v1alpha1: machine.certSANs = []",
		}},
		{"an image cache", "v1.11", func(c *Cluster, _ *Machine) { c.ImageCache = true }, []string{
			`+ VolumeConfig/IMAGECACHE: provisioning.diskSelector.match = "system_disk"`,
			`+ v1alpha1: machine.features.imageCache.localEnabled = true`,
		}},
		{"wipe and image", "v1.13", func(_ *Cluster, m *Machine) {
			m.Install.Wipe, m.Install.Image = true, "ghcr.io/siderolabs/installer:v1.13.0"
		}, []string{
			`+ v1alpha1: machine.install.image = "ghcr.io/siderolabs/installer:v1.13.0"`,
			"~ v1alpha1: machine.install.wipe: false -> true",
		}},
		{"kernel arguments", "v1.13", func(_ *Cluster, m *Machine) { m.Install.ExtraKernelArgs = []string{"a=b"} }, []string{
			`+ v1alpha1: machine.install.extraKernelArgs[0] = "a=b"`,
			"~ v1alpha1: machine.install.grubUseUKICmdline: true -> false",
		}},
		{"kernel arguments, before 1.12", "v1.11",
			func(_ *Cluster, m *Machine) { m.Install.ExtraKernelArgs = []string{"a=b"} }, []string{
				`+ v1alpha1: machine.install.extraKernelArgs[0] = "a=b"`,
			}},
		{"a disk by its properties", "v1.13", func(_ *Cluster, m *Machine) {
			m.Install = Install{DiskSelector: &DiskSelector{Size: "> 1TB", Type: "hdd", Model: "m*", Serial: "s", Modalias: "a",
				UUID: "u", WWID: "w", BusPath: "/pci*"}}
		}, []string{
			`- v1alpha1: machine.install.disk = "/dev/sda"`, `+ v1alpha1: machine.install.diskSelector.busPath = "/pci*"`,
			`+ v1alpha1: machine.install.diskSelector.modalias = "a"`,
			`+ v1alpha1: machine.install.diskSelector.model = "m*"`, `+ v1alpha1: machine.install.diskSelector.serial = "s"`,
			`+ v1alpha1: machine.install.diskSelector.size = "> 1TB"`,
			`+ v1alpha1: machine.install.diskSelector.type = "hdd"`, `+ v1alpha1: machine.install.diskSelector.uuid = "u"`,
			`+ v1alpha1: machine.install.diskSelector.wwid = "w"`,
		}},
		{"a container needs no disk", "v1.13", func(_ *Cluster, m *Machine) { m.Mode, m.Install = Container, Install{} },
			[]string{
				`+ v1alpha1: cluster.apiServer.certSANs[0] = "127.0.0.1"`,
				`+ v1alpha1: cluster.apiServer.certSANs[1] = "localhost"`,
				`+ v1alpha1: cluster.apiServer.certSANs[2] = "10.0.0.10"`, `+ v1alpha1: machine.certSANs[0] = "127.0.0.1"`,
				`+ v1alpha1: machine.certSANs[1] = "localhost"`, `+ v1alpha1: machine.certSANs[2] = "10.0.0.10"`,
				"- v1alpha1: machine.certSANs = []",
				`- v1alpha1: machine.install.disk = "/dev/sda"`, "- v1alpha1: machine.install.grubUseUKICmdline = true",
				"- v1alpha1: machine.install.wipe = false",
			}},
		{"a disk by patch", "v1.13", func(_ *Cluster, m *Machine) {
			m.Install, m.Patches = Install{}, []string{"machine: {install: {disk: /dev/vda}}"}
		}, []string{
			`~ v1alpha1: machine.install.disk: "/dev/sda" -> "/dev/vda"`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, m := testCluster(test.contract), testMachine(ControlPlane)
			before := generated(t, c, m)
			test.change(&c, &m)

			changes, err := Diff(before.Bytes, generated(t, c, m).Bytes)
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(sorted(test.want), sorted(lines(changes))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestGenerate_registryCertificates(t *testing.T) {
	pem, err := os.ReadFile("testdata/registry-ca.pem")
	if err != nil {
		t.Fatal(err)
	}

	for contract, want := range map[string]string{
		"v1.11": "+ v1alpha1: machine.registries.config[\"r.test:5000\"].tls.ca = ",
		"v1.13": "+ RegistryTLSConfig/r.test:5000: ca = ",
	} {
		c := testCluster(contract)
		before := generated(t, c, testMachine(Worker))
		c.Registries.TLS = map[string]RegistryTLS{"r.test:5000": {CA: string(pem)}}

		changes, err := Diff(before.Bytes, generated(t, c, testMachine(Worker)).Bytes)
		if err != nil {
			t.Fatal(err)
		}

		if len(changes) != 1 || !strings.HasPrefix(changes[0].String(), want) {
			t.Errorf("contract %s: %v", contract, changes)
		}
	}
}

func TestPatches_ofUnknownDocuments(t *testing.T) {
	const first = "# a comment\napiVersion: v1beta1\nkind: FutureConfig\nname: x\nmap: {a: 1, b: {c: 2}}\nlist: [1]   # " +
		"kept\n"

	t.Run("untouched", func(t *testing.T) {
		for _, text := range []string{first, "---\n" + first, "--- # separator\n" + first + "\n\n",
			strings.ReplaceAll(first, "\n", "\r\n"), "machine: {}\n---\n" + first + "---\nmachine: {}\n"} {
			config, err := with(t, "v1.13",
				strings.Replace(text, "---\nmachine: {}\n",
					"---\napiVersion: v1alpha1\nkind: KmsgLogConfig\nname: l\nurl: udp://10.0.0.1:1\n", 1))
			if err != nil {
				t.Fatal(err)
			}

			if !strings.HasSuffix(config, "\n---\n"+first) {
				t.Errorf("from %q:\n%s", text, config[len(config)-300:])
			}
		}
	})

	t.Run("several, in order", func(t *testing.T) {
		config, err := with(t, "v1.11", "apiVersion: v9\nkind: B\n---\napiVersion: v9\nkind: A\nname: one",
			"apiVersion: v9\nkind: A\nname: two")
		if err != nil {
			t.Fatal(err)
		}

		if want := "\n---\napiVersion: v9\nkind: B\n---\napiVersion: v9\nkind: A\nname: one\n---\napiVersion: v9\nkind: " +
			"A\nname: two\n"; !strings.HasSuffix(config, want) {
			t.Error(config[len(config)-300:])
		}
	})

	for _, test := range []struct{ name, patch, want string }{
		{"merged", "apiVersion: v1beta1\nkind: FutureConfig\nname: x\nmap: {a: 9, b: {d: 3}}\nlist: [2]\nnew: " +
			"true\nnothing: null\n",
			"apiVersion: v1beta1\nkind: FutureConfig\nlist:\n    - 1\n    - 2\nmap:\n    a: 9\n    b:\n        c: 2\n        " +
				"d: 3\nname: x\nnew: true\nnothing: null\n"},
		{"a part deleted", "apiVersion: v1beta1\nkind: FutureConfig\nname: x\nmap: {b: {$patch: delete}}\n",
			"apiVersion: v1beta1\nkind: FutureConfig\nlist:\n    - 1\nmap:\n    a: 1\nname: x\n"},
		{"deleted", "apiVersion: v1beta1\nkind: FutureConfig\nname: x\n$patch: delete\n", "auto: stable\n"},
		{"of another name", "apiVersion: v1beta1\nkind: FutureConfig\nname: y\n",
			"\n---\napiVersion: v1beta1\nkind: FutureConfig\nname: y\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			config, err := with(t, "v1.13", first, test.patch)
			if err != nil {
				t.Fatal(err)
			}

			if !strings.HasSuffix(config, test.want) {
				t.Error(config[len(config)-300:])
			}
		})
	}
}

func TestPatches_refused(t *testing.T) {
	const secret = "hunter2hunter2"

	for _, test := range []struct {
		name, contract, patch string
		reason                error
		want                  string
	}{
		{"not YAML", "v1.13", "machine: [", ErrNotYAML, "invalid YAML"},
		{"tabs", "v1.13", "machine:\n\tinstall: {}", ErrNotYAML, "invalid YAML"},
		{"a text", "v1.13", "hello", ErrNotPatch, "a single value"},
		{"a secret text", "v1.13", secret, ErrNotPatch, "a single value"},
		{"a number", "v1.13", "7", ErrNotPatch, "a single value"},
		{"a path", "v1.13", "@patches/cp.yaml", ErrNotPatch, `the path "@patches/cp.yaml"`},
		{"a list of texts", "v1.11", "[a, b]", ErrNotPatch, "a list that is not a JSON 6902 patch"},
		{"a list of documents", "v1.11", "- machine: {}", ErrNotPatch, "entry 0 has no operation of the names add"},
		{"an operation without path", "v1.11", "- op: remove", ErrNotPatch, "entry 0 has no path that starts with a slash"},
		{"an operation without value", "v1.11", "- {op: add, path: /machine/x}", ErrNotPatch, "entry 0 (add) has no value"},
		{"a copy from nowhere", "v1.11", "- {op: copy, path: /machine/x}", ErrNotPatch, "entry 0 (copy) has no from"},
		{"a single operation", "v1.11", "{op: add, path: /machine/x, value: 1}", ErrNotPatch,
			"a single operation of a JSON 6902 patch"},
		{"a list among documents", "v1.11", "machine: {}\n---\n- op: remove\n  path: /x", ErrNotPatch,
			"a list among several documents"},
		{"an unindented patch", "v1.13", "install:\n  disk: /dev/sda", ErrNotPatch,
			"a document with neither machine, cluster nor kind"},
		{"no apiVersion", "v1.13", "kind: HostnameConfig\nhostname: x", ErrNotPatch,
			"a HostnameConfig document without apiVersion"},
		{"unknown fields", "v1.13", "machine:\n  instal: {disk: " + secret + "}\n  network: {foo: " + secret + "}",
			ErrUnknownField, "unknown fields: machine.instal.disk, machine.network.foo"},
		{"unknown fields of a document", "v1.13", "apiVersion: v1alpha1\nkind: HostnameConfig\nhostnam: " + secret,
			ErrUnknownField, "unknown fields: hostnam"},
		{"a value of another type", "v1.13", "machine:\n  certSANs: " + secret, ErrNotPatch, "an invalid patch"},
		{"a text for a number", "v1.13", "cluster: {controlPlane: {localAPIServerPort: " + secret + "}}", ErrNotPatch,
			"an invalid patch"},
		{"a key that is not base64", "v1.13", "machine: {ca: {crt: \"%" + secret + "\"}}", ErrNotPatch,
			"an invalid patch"},
		{"a merge key of a text", "v1.13", "machine: {sysctls: {<<: " + secret + "}}", ErrNotPatch,
			"a merge key (<<) whose value is not a mapping"},
		{"a merge key of a list of texts", "v1.13", "machine: {sysctls: {<<: [{}, " + secret + "]}}", ErrNotPatch,
			"a merge key (<<) whose value is not a mapping"},
		{"a key twice", "v1.13", "machine:\n  network: {}\n  sysctls: {a: " + secret + ", a: b}", ErrNotPatch,
			"the key machine.sysctls.a twice"},
		{"a key twice in a list", "v1.13", "apiVersion: v9\nkind: X\nlist: [{}, {a: 1, a: 2}]", ErrNotPatch,
			"the key list[1].a twice"},
		{"documents that exclude each other", "v1.13", "apiVersion: v1alpha1\nkind: LinkConfig\nname: a\n---\n" +
			"apiVersion: v1alpha1\nkind: DummyLinkConfig\nname: a", ErrNotPatch, "conflicting documents"},
		{"JSON 6902 on several documents", "v1.12", `[{"op":"remove","path":"/machine/install"}]`, ErrMultiDocument,
			"a JSON 6902 patch (a list of operations) for a configuration of several documents"},
		{"a path that is not there", "v1.11", `[{"op":"remove","path":"/machine/nothing"}]`, ErrNotPatch,
			"a patch that does not apply"},
		{"a test that fails", "v1.11", `[{"op":"test","path":"/machine/type","value":"` + secret + `"}]`, ErrNotPatch,
			"a patch that does not apply"},
		{"an unknown field by JSON 6902", "v1.11", `[{"op":"add","path":"/machine/nope","value":"` + secret + `"}]`,
			ErrUnknownField, "unknown fields: machine.nope"},
		{"a delete of a part that is not there", "v1.13", "machine: {kernel: {modules: {$patch: delete}}}", ErrNotPatch,
			"a patch that does not apply"},
		{"another role", "v1.13", "machine: {type: worker}", ErrInvalidConfig,
			"machine.type worker for a machine of role controlplane"},
		{"another machine token", "v1.13", "machine: {token: " + secret + "}", ErrInvalidConfig,
			"machine.token differs from the secrets bundle"},
		{"another authority", "v1.13", "machine: {ca: {crt: aHVudGVyMg==, key: aHVudGVyMg==}}", ErrInvalidConfig,
			"machine.ca differs from the secrets bundle"},
		{"another cluster", "v1.13", "cluster: {id: x}", ErrInvalidConfig, "cluster.id differs from the secrets bundle"},
		{"no etcd authority", "v1.11", "[{op: remove, path: /cluster/etcd/ca}]", ErrInvalidConfig,
			"cluster.etcd.ca differs from the secrets bundle"},
		{"another service account key", "v1.13", "cluster: {serviceAccount: {key: aHVudGVyMg==}}", ErrInvalidConfig,
			"cluster.serviceAccount differs from the secrets bundle"},
		{"no main document left", "v1.11", `[{"op":"remove","path":"/machine"}]`, ErrInvalidConfig,
			"no machine or no cluster section"},
		{"an invalid value", "v1.13", "cluster: {network: {dnsDomain: \"a b\"}}", ErrInvalidConfig,
			`"a b" is not a valid DNS name`},
		{"kernel arguments beside the UKI's", "v1.13", "machine: {install: {extraKernelArgs: [a]}}", ErrInvalidConfig,
			"install.extraKernelArgs and install.grubUseUKICmdline can't be used together"},
		{"no Kubernetes node", "v1.13", "machine: {kubelet: {skipNodeRegistration: true}}", ErrInvalidConfig,
			"skipNodeRegistration is true"},
		{"no Kubernetes node by a document", "v1.14", "apiVersion: v1alpha1\nkind: KubeNodeConfig\nskipNodeRegistration: true",
			ErrInvalidConfig, "skipNodeRegistration is true"},
		{"auto and a host name", "v1.13", "apiVersion: v1alpha1\nkind: HostnameConfig\nauto: nonsense", ErrNotPatch,
			"an invalid patch"},
		{"a bad WireGuard key", "v1.13",
			"machine: {network: {interfaces: [{interface: wg0, wireguard: {privateKey: " + secret + "}}]}}", ErrInvalidConfig,
			"private key is invalid"},
		{"an alias", "v1.13", "&a [*a]", nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := with(t, test.contract, "machine: {}", test.patch, "cluster: {}")

			mistakes := FieldErrors(err)
			if len(mistakes) != 1 {
				t.Fatalf("got %v", err)
			}

			if mistakes[0].Field != "patches[1]" {
				t.Errorf("the field is %q: %v", mistakes[0].Field, err)
			}

			if test.reason != nil && !errors.Is(err, test.reason) || !strings.Contains(mistakes[0].Found, test.want) {
				t.Errorf("got %v: %q, want %v: %q", mistakes[0].Err, mistakes[0].Found, test.reason, test.want)
			}

			if strings.Contains(fmt.Sprintf("%v %+v", err, mistakes), secret[:7]) {
				t.Errorf("the error quotes a value: %v", err)
			}
		})
	}
}

// What Talos 1.14 takes is taken (configpatcher/load.go and strategic.go), and merge keys, which it takes for fields.
func TestPatches_asTalosTakesThem(t *testing.T) {
	const kmsg = "apiVersion: v1alpha1\nkind: KmsgLogConfig\nname: l\nurl: udp://10.0.0.1:1\n"

	for _, test := range []struct {
		name, patch string
		want        []string
	}{
		{"the main document twice", "machine: {sysctls: {a: \"1\"}}\n---\nmachine: {sysctls: {a: \"2\", b: \"3\"}}",
			[]string{`+ v1alpha1: machine.sysctls.a = "2"`, `+ v1alpha1: machine.sysctls.b = "3"`}},
		{"a document twice", kmsg + "---\n" + strings.Replace(kmsg, ":1\n", ":2\n", 1),
			[]string{`+ KmsgLogConfig/l: url = "udp://10.0.0.1:2"`}},
		{"a volume twice", strings.Repeat("---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\n"+
			"provisioning: {maxSize: 50GiB}\n", 2), []string{`+ VolumeConfig/EPHEMERAL: provisioning.maxSize = "50GiB"`}},
		{"a document of an unknown kind twice", "apiVersion: v9\nkind: X\n---\napiVersion: v9\nkind: X\na: 1\n",
			[]string{"+ X: a = (sensitive value)"}},
		{"a merge key", "machine:\n  sysctls: &s {a: \"1\", b: \"2\"}\n  sysfs: {<<: *s, b: \"3\"}\n", []string{
			`+ v1alpha1: machine.sysctls.a = "1"`, `+ v1alpha1: machine.sysctls.b = "2"`,
			`+ v1alpha1: machine.sysfs.a = "1"`, `+ v1alpha1: machine.sysfs.b = "3"`}},
		{"merge keys of several", "machine:\n  sysctls: &s {a: \"1\"}\n  sysfs: {<<: [*s, {a: \"4\", b: \"5\"}]}\n", []string{
			`+ v1alpha1: machine.sysctls.a = "1"`, `+ v1alpha1: machine.sysfs.a = "1"`, `+ v1alpha1: machine.sysfs.b = "5"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(sorted(test.want), sorted(changesBy(t, "v1.13", test.patch))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A patch of a whole cluster may delete what only one role has: elsewhere it has no effect, and a warning says so.
func TestPatches_deleteOfAnAbsentDocument(t *testing.T) {
	const scheduler = "apiVersion: v1alpha1\nkind: KubeSchedulerConfig\n$patch: delete\n"

	for _, test := range []struct {
		role        Role
		patch, want string
	}{
		{ControlPlane, scheduler, ""},
		{Worker, scheduler, "patches[0]: found $patch: delete for the document KubeSchedulerConfig, which does not exist"},
		{Worker, "apiVersion: v9\nkind: X\n$patch: delete\n",
			"patches[0]: found $patch: delete for the document X, which does not exist"},
		{Worker, "apiVersion: v1alpha1\nkind: VolumeConfig\nname: STATE\n$patch: delete\n",
			"patches[0]: found $patch: delete for the document VolumeConfig/STATE, which does not exist"},
	} {
		c := testCluster(documentContract)
		c.Patches = []string{test.patch}

		config, err := Generate(c, testMachine(test.role), testBundle(t))
		got := ""
		for _, ineffective := range config.Ineffective {
			got += ineffective.Field + ": found " + ineffective.Found
		}

		if err != nil || got != test.want {
			t.Errorf("%s %s: %v, %q", test.role, test.patch, err, got)
		}

		if strings.Contains(string(config.Bytes), "KubeSchedulerConfig") || strings.Contains(string(config.Bytes), "kind: X") {
			t.Errorf("%s %s: the document is there", test.role, test.patch)
		}
	}
}

func TestValidatePatch_withoutAConfiguration(t *testing.T) {
	if err := errors.Join(ValidatePatch("machine: {}", "v1.13"), ValidatePatch("", "v1.13"),
		ValidatePatch("- {op: remove, path: /machine/x}", "v1.11")); err != nil {
		t.Error(err)
	}

	err := ValidatePatch("- {op: remove, path: /machine/x}", "v1.12")
	if !errors.Is(err, ErrMultiDocument) || FieldErrors(err)[0].Field != "" {
		t.Errorf("got %v", err)
	}

	if err := ValidatePatch("machine: {}", "1.13"); len(FieldErrors(err)) != 1 {
		t.Errorf("a contract without v: %v", err)
	}

	// A patch that adds a document makes later JSON 6902 patches impossible.
	err = ValidatePatches([]string{"- {op: remove, path: /machine/x}",
		"apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL", "- {op: remove, path: /machine/x}"}, "v1.11")
	if mistakes := FieldErrors(err); len(mistakes) != 1 || mistakes[0].Field != "patches[2]" ||
		!errors.Is(err, ErrMultiDocument) {
		t.Errorf("got %v", err)
	}
}

func TestBlame_namesTheScopeOfABadPatch(t *testing.T) {
	m := testMachine(Worker)
	m.PoolPatches = []string{"machine: {sysctls: {a: b}}", "cluster: {etcd: {subnet: 10.0.0.0/8}}"}
	m.Patches = []string{"machine: {sysctls: {c: d}}"}

	_, err := Generate(testCluster("v1.13"), m, testBundle(t))

	mistakes := FieldErrors(err)
	if len(mistakes) != 1 || mistakes[0].Field != "pool.patches[1]" ||
		!strings.Contains(mistakes[0].Found, "etcd config is only allowed on control plane machines") {
		t.Errorf("got %v", err)
	}
}

func FuzzValidatePatch(f *testing.F) {
	for _, seed := range []string{
		"machine: {}", "- {op: add, path: /machine/x, value: 1}",
		"apiVersion: v9\nkind: X\n---\nmachine:\n  install: {$patch: delete}\n", "%YAML 1.2\n---\na: &a [*a]\n",
		"--- |\n x\n...\n", "? [a]\n: b",
	} {
		f.Add(seed)
	}

	generators := map[string]*Generator{}

	for _, contract := range contracts {
		generator, err := NewChecker(testCluster(contract))
		if err != nil {
			f.Fatal(err)
		}

		generators[contract] = generator
	}

	f.Fuzz(func(t *testing.T, text string) {
		for contract, generator := range generators {
			m := testMachine(Worker)
			m.Patches = []string{text}

			fresh := &Generator{cluster: generator.cluster, contract: generator.contract, input: generator.input, bundle: generator.bundle}

			config, err := fresh.Machine(m)
			if err == nil {
				if verr := ValidatePatch(text, contract); verr != nil {
					t.Errorf("%q generates, but does not validate: %v", text, verr)
				}

				continue
			}

			if len(FieldErrors(err)) == 0 {
				t.Errorf("%q gives an error without a field: %v (%s)", text, err, config)
			}
		}
	})
}
