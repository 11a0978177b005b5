package machineconfig

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// messages lists what a person reads.
func messages(err error) []string {
	var texts []string
	for _, mistake := range FieldErrors(err) {
		texts = append(texts, mistake.Error())
	}

	return texts
}

func TestValidateCluster_badSettings(t *testing.T) {
	const (
		endpointShape = `allowed: a URL of the Kubernetes API such as https://10.0.0.10:6443 or https://[fd00::10]:6443; `
		cidrShape     = `allowed: a network in CIDR notation, such as 10.244.0.0/16 or fd00:10::/56; `
	)

	for _, test := range []struct {
		name   string
		change func(*Cluster)
		want   []string
	}{
		{"no name", func(c *Cluster) { c.Name = "" },
			[]string{`name: found no name; allowed: a name for the cluster; set name`}},
		{"a name with spaces", func(c *Cluster) { c.Name = "my cluster" }, []string{
			`name: found "my cluster"; allowed: up to 63 letters, digits, dots, dashes and underscores, starting with a letter or digit; choose such a name`,
		}},
		{"no endpoint", func(c *Cluster) { c.Endpoint = "" },
			[]string{`endpoint: found no endpoint; ` + endpointShape + `set endpoint`}},
		{"an endpoint without scheme", func(c *Cluster) { c.Endpoint = "10.0.0.10:6443" },
			[]string{`endpoint: found "10.0.0.10:6443"; ` + endpointShape + `put https:// in front`}},
		{"an http endpoint", func(c *Cluster) { c.Endpoint = "http://10.0.0.10:6443" },
			[]string{`endpoint: found "http://10.0.0.10:6443"; ` + endpointShape + `the Kubernetes API supports only https`}},
		{"an endpoint that is no URL", func(c *Cluster) { c.Endpoint = "https://fd00::10:6443:x" },
			[]string{`endpoint: found "https://fd00::10:6443:x"; ` + endpointShape +
				`check brackets around an IPv6 address and the port`}},
		{"an IPv6 endpoint without brackets", func(c *Cluster) { c.Endpoint = "https://fd00::10:6443" },
			[]string{`endpoint: found "https://fd00::10:6443"; ` + endpointShape +
				`check brackets around an IPv6 address and the port`}},
		{"a port out of range", func(c *Cluster) { c.Endpoint = "https://10.0.0.10:70000" },
			[]string{`endpoint: found "https://10.0.0.10:70000"; ` + endpointShape +
				`use a port from 1 to 65535; Talos serves the Kubernetes API on 6443`}},
		{"port 0", func(c *Cluster) { c.Endpoint = "https://10.0.0.10:0" },
			[]string{`endpoint: found "https://10.0.0.10:0"; ` + endpointShape +
				`use a port from 1 to 65535; Talos serves the Kubernetes API on 6443`}},
		{"an empty port", func(c *Cluster) { c.Endpoint = "https://10.0.0.10:" },
			[]string{`endpoint: found "https://10.0.0.10:"; ` + endpointShape +
				`write the port after the colon; Talos serves the Kubernetes API on 6443`}},
		{"a port that is no number", func(c *Cluster) { c.Endpoint = "https://10.0.0.10:api" },
			[]string{`endpoint: found "https://10.0.0.10:api"; ` + endpointShape +
				`check brackets around an IPv6 address and the port`}},
		{"no host", func(c *Cluster) { c.Endpoint = "https://:6443" },
			[]string{`endpoint: found "https://:6443"; ` + endpointShape + `name the host`}},
		{"an endpoint with a path", func(c *Cluster) { c.Endpoint = "https://10.0.0.10:6443/api" },
			[]string{`endpoint: found "https://10.0.0.10:6443/api"; ` + endpointShape + `remove everything after the port`}},
		{"an endpoint with a password", func(c *Cluster) { c.Endpoint = "https://user:hunter2@10.0.0.10:6443" },
			[]string{`endpoint: found a URL with a user name; ` + endpointShape + `remove the part before the @`}},
		{"a mistyped address", func(c *Cluster) { c.Endpoint = "https://10.0.0:6443" },
			[]string{`endpoint: found "https://10.0.0:6443"; ` + endpointShape + `use an IP address or a DNS name as host`}},
		{"a Kubernetes version of two numbers", func(c *Cluster) { c.KubernetesVersion = "v1.33" }, []string{
			`kubernetes_version: found "v1.33"; allowed: a version, such as ` + CurrentKubernetes + `; write all three numbers`,
		}},
		{"a contract that is too new", func(c *Cluster) { c.Contract = "v1.15" }, []string{
			`talos_version_contract: found "v1.15"; allowed: v1.10 to v1.14, without a patch level; write the Talos minor version the cluster was created with, such as v1.14`,
		}},
		{"a contract with a patch level", func(c *Cluster) { c.Contract = "v1.13.0" }, []string{
			`talos_version_contract: found "v1.13.0"; allowed: v1.10 to v1.14, without a patch level; write the Talos minor version the cluster was created with, such as v1.14`,
		}},
		{"bad certificate names", func(c *Cluster) {
			c.CertSANs = []string{"ok.test", "https://x.test", "10.0.0.1:6443", "10.0.0.0/8", "under_score", "ok.test", ""}
		}, []string{
			`cert_sans[1]: found "https://x.test"; allowed: an IP address or a DNS name; leave out the scheme and the port`,
			`cert_sans[2]: found "10.0.0.1:6443"; allowed: an IP address or a DNS name; leave out the port`,
			`cert_sans[3]: found "10.0.0.0/8"; allowed: an IP address or a DNS name; certificates name single addresses, not networks`,
			`cert_sans[4]: found "under_score"; allowed: an IP address or a DNS name; use an IP address or a DNS name`,
			`cert_sans[6]: found ""; allowed: an IP address or a DNS name; use an IP address or a DNS name`,
			`cert_sans[5]: found "ok.test" again; allowed: each value once; remove it; it is the same as cert_sans[0]`,
		}},
		{"malformed networks", func(c *Cluster) {
			c.PodCIDRs = []string{"10.244.0.0", "fd00::1/64"}
			c.ServiceCIDRs = []string{"ten/8", "0.0.0.0/0", "::ffff:10.0.0.0/104"}
		}, []string{
			`pod_cidrs[0]: found "10.244.0.0"; ` + cidrShape + `add the prefix length after a slash`,
			`pod_cidrs[1]: found "fd00::1/64"; ` + cidrShape + `the address has bits set after the prefix; write fd00::/64`,
			`service_cidrs[0]: found "ten/8"; ` + cidrShape + `write address and prefix length with a slash between them`,
			`service_cidrs[1]: found "0.0.0.0/0"; ` + cidrShape + `it covers the whole internet; choose a private network`,
			`service_cidrs[2]: found "::ffff:10.0.0.0/104"; ` + cidrShape + `write the IPv4 network as such`,
		}},
		{"two networks of a family", func(c *Cluster) { c.PodCIDRs = []string{"10.1.0.0/16", "10.2.0.0/16"} }, []string{
			`pod_cidrs[1]: found "10.2.0.0/16"; allowed: at most one IPv4 and one IPv6 network; remove it, or use an address family other than that of pod_cidrs[0]`,
		}},
		{"overlapping networks", func(c *Cluster) {
			c.PodCIDRs = []string{"10.0.64.0/18", "fd00::/48"}
			c.ServiceCIDRs = []string{"10.0.96.0/20", "fd00:0:0:20::/112"}
		}, []string{
			`service_cidrs[0]: found "10.0.96.0/20"; allowed: a network that does not overlap with pod_cidrs; it overlaps with 10.0.64.0/18 of pod_cidrs[0]; choose another one`,
			`service_cidrs[1]: found "fd00:0:0:20::/112"; allowed: a network that does not overlap with pod_cidrs; it overlaps with fd00::/48 of pod_cidrs[1]; choose another one`,
		}},
		{"services in the default pod network", func(c *Cluster) { c.ServiceCIDRs = []string{"10.244.128.0/20"} }, []string{
			`service_cidrs[0]: found "10.244.128.0/20"; allowed: a network that does not overlap with pod_cidrs; it overlaps with 10.244.0.0/16 of pod_cidrs; choose another one`,
		}},
		{"pods in the default service network", func(c *Cluster) { c.PodCIDRs = []string{"10.96.0.0/16"} }, []string{
			`pod_cidrs[0]: found "10.96.0.0/16"; allowed: a network that does not overlap with service_cidrs; it overlaps with 10.96.0.0/12, the default of service_cidrs; ` +
				`choose another one, or set service_cidrs as well`,
		}},
		{"the endpoint in the default service network", func(c *Cluster) { c.Endpoint = "https://10.96.4.4:6443" }, []string{
			`service_cidrs: found "10.96.0.0/12"; allowed: a network that no machine is in; it contains the endpoint 10.96.4.4; choose another one`,
		}},
		{"the endpoint in a pod network",
			func(c *Cluster) { c.Endpoint, c.PodCIDRs = "https://[fd00::10]:6443", []string{"fd00::/56"} }, []string{
				`pod_cidrs[0]: found "fd00::/56"; allowed: a network that no machine is in; it contains the endpoint fd00::10; choose another one`,
			}},
		{"a DNS domain in capitals", func(c *Cluster) { c.DNSDomain = "Cluster.Local" }, []string{
			`dns_domain: found "Cluster.Local"; allowed: a DNS name in lower case, such as cluster.local; use letters, digits and dashes between dots`,
		}},
		{"an unknown CNI", func(c *Cluster) { c.CNI = CNI{Name: "cilium"} },
			[]string{`cni.name: found "cilium"; allowed: flannel, custom or none; choose one of them`}},
		{"custom without URLs", func(c *Cluster) { c.CNI = CNI{Name: CNICustom} }, []string{
			`cni.urls: found no URLs; allowed: at least one URL of a manifest with the CNI custom; add the manifests of the pod network, or set the CNI to none and install it by other means`,
		}},
		{"URLs with none", func(c *Cluster) { c.CNI = CNI{Name: CNINone, URLs: []string{"https://x.test/a.yaml"}} }, []string{
			`cni.urls: found URLs with the CNI none; allowed: URLs with the CNI custom only; set cni.name to "custom", or remove the URLs`,
		}},
		{"URLs without a name", func(c *Cluster) { c.CNI = CNI{URLs: []string{"https://x.test/a.yaml"}} }, []string{
			`cni.urls: found URLs with the CNI flannel; allowed: URLs with the CNI custom only; set cni.name to "custom", or remove the URLs`,
		}},
		{"a manifest that is no URL", func(c *Cluster) {
			c.CNI = CNI{Name: CNICustom, URLs: []string{"cilium.yaml", "https://u:p@/x"}}
		}, []string{
			`cni.urls[0]: found "cilium.yaml"; allowed: an http or https URL of a manifest; write the whole URL`,
			`cni.urls[1]: found a URL with credentials; allowed: an http or https URL of a manifest; write the whole URL`,
		}},
		{"options of flannel with none", func(c *Cluster) { c.CNI = CNI{Name: CNINone, Flannel: &Flannel{}} }, []string{
			`cni.flannel: found options of flannel with the CNI none; allowed: options of flannel with the CNI flannel only; remove them`,
		}},
		{"network policies before 1.13",
			func(c *Cluster) { c.Contract, c.CNI = "v1.12", CNI{Flannel: &Flannel{KubeNetworkPolicies: true}} }, []string{
				`cni.flannel.kube_network_policies: found network policies with contract v1.12; allowed: network policies with contract v1.13; switch them off, or raise the contract when all machines run Talos v1.13`,
			}},
		{"patches", func(c *Cluster) { c.Patches = []string{"machine: {}", "a: [", "machine:\n  nope: 1"} }, []string{
			"patches[1]: found invalid YAML (line 2: did not find expected node " +
				"content); allowed: " + patchShape + "; check indentation and quoting",
			"patches[2]: found unknown fields: machine.nope; allowed: fields of the machine configuration of Talos 1.14; " +
				"check spelling and indentation",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := testCluster("v1.13")
			test.change(&c)

			_, err := Generate(c, testMachine(ControlPlane), testBundle(t))
			if diff := cmp.Diff(test.want, messages(err)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}

			if strings.Contains(fmt.Sprint(err), "hunter2") {
				t.Error("the message has a password")
			}
		})
	}
}

func TestValidateCluster_badRegistries(t *testing.T) {
	const host = `allowed: the host of a registry with its port if any, such as registry.local:5000; leave out scheme and path`

	for _, test := range []struct {
		name       string
		contract   string
		registries Registries
		want       []string
	}{
		{"a mirror for a URL", "v1.13",
			Registries{Mirrors: map[string]RegistryMirror{
				"https://docker.io": {Endpoints: []RegistryEndpoint{{URL: "https://m.test"}}}}}, []string{
				`registries.mirrors["https://docker.io"]: found "https://docker.io"; allowed: the host of a registry, such as docker.io or registry.local:5000, or "*"; leave out scheme and path`,
			}},
		{"a mirror without endpoints", "v1.13", Registries{Mirrors: map[string]RegistryMirror{"docker.io": {}}}, []string{
			`registries.mirrors["docker.io"].endpoints: found no endpoints; allowed: at least one mirror; add one, or remove the entry`,
		}},
		{"endpoints that are no URLs", "v1.13",
			Registries{Mirrors: map[string]RegistryMirror{
				"docker.io": {Endpoints: []RegistryEndpoint{{URL: "m.test:5000"}, {URL: "https://u:hunter2@m.test"}}}}}, []string{
				`registries.mirrors["docker.io"].endpoints[0].url: found "m.test:5000"; allowed: an http or https URL, such as https://mirror.local:5000; write the scheme`,
				`registries.mirrors["docker.io"].endpoints[1].url: found a URL with credentials; allowed: a URL without them; put them in registries.auth`,
			}},
		{"override for some, before 1.12", "v1.11",
			Registries{Mirrors: map[string]RegistryMirror{
				"docker.io": {Endpoints: []RegistryEndpoint{{URL: "https://a.test", OverridePath: true},
					{URL: "https://b.test"}}}}}, []string{
				`registries.mirrors["docker.io"].endpoints: found override_path for some endpoints only; allowed: the same for all endpoints of a mirror with contract v1.11; set it for all of them, or for none`,
			}},
		{"override for some", "v1.12",
			Registries{Mirrors: map[string]RegistryMirror{
				"docker.io": {Endpoints: []RegistryEndpoint{{URL: "https://a.test", OverridePath: true},
					{URL: "https://b.test"}}}}}, nil},
		{"two ways to authenticate", "v1.13",
			Registries{Auth: map[string]RegistryAuth{"r.test": {Username: "a", Password: "hunter2", Auth: "hunter2"}}}, []string{
				`registries.auth["r.test"]: found several ways to authenticate; allowed: a username with a password, or auth, or an identity token; keep one of them`,
			}},
		{"auth for a path", "v1.13", Registries{Auth: map[string]RegistryAuth{"r.test/team": {Auth: "x"}}},
			[]string{`registries.auth["r.test/team"]: found "r.test/team"; ` + host}},
		{"a port that is none", "v1.13", Registries{TLS: map[string]RegistryTLS{"r.test:0": {}}},
			[]string{`registries.tls["r.test:0"]: found "r.test:0"; ` + host}},
		{"a CA that is a file name", "v1.13", Registries{TLS: map[string]RegistryTLS{"r.test:5000": {CA: "ca.pem"}}},
			[]string{
				`registries.tls["r.test:5000"].ca: found text that is not a certificate; allowed: certificates in PEM; set the contents of the file, not its name`,
			}},
		{"a client certificate alone", "v1.13", Registries{TLS: map[string]RegistryTLS{"r.test": {ClientCertificate: "x"}}},
			[]string{
				`registries.tls["r.test"]: found a client certificate without key, or a key without certificate; allowed: both or none; give both`,
			}},
		{"a client certificate that is none", "v1.13",
			Registries{TLS: map[string]RegistryTLS{"r.test": {ClientCertificate: "x", ClientKey: "hunter2"}}}, []string{
				`registries.tls["r.test"].client_certificate: found a client certificate and key that do not match or are not PEM; allowed: a PEM certificate and its PEM key; set the contents of the files`,
			}},
		{"hosts of every kind", "v1.13",
			Registries{TLS: map[string]RegistryTLS{"r.test": {}, "10.0.0.1": {}, "10.0.0.1:5000": {}, "[fd00::1]:5000": {},
				"[fd00::1]": {}, "localhost:5000": {}}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := testCluster(test.contract)
			c.Registries = test.registries

			_, err := Generate(c, testMachine(Worker), testBundle(t))
			if diff := cmp.Diff(test.want, messages(err)); diff != "" || (err != nil) != (test.want != nil) {
				t.Errorf("%v\n-want +got:\n%s", err, diff)
			}

			if strings.Contains(fmt.Sprint(err), "hunter2") {
				t.Error("the message has a password")
			}
		})
	}
}

func TestValidateMachine_badSettings(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Machine)
		want   []string
	}{
		{"no role", func(m *Machine) { m.Role = "" },
			[]string{`machine.role: found no role; allowed: controlplane or worker; set one`}},
		{"an unknown role", func(m *Machine) { m.Role = "init" },
			[]string{`machine.role: found "init"; allowed: controlplane or worker; choose one of them`}},
		{"an unknown mode", func(m *Machine) { m.Mode = "cloud" },
			[]string{`machine.mode: found "cloud"; allowed: metal or container; choose one of them`}},
		{"no disk", func(m *Machine) { m.Install = Install{} }, []string{
			`machine.install.disk: found no disk to install on; allowed: a device such as /dev/sda, or a disk selector; set install.disk or install.disk_selector`,
		}},
		{"a disk and a selector", func(m *Machine) { m.Install.DiskSelector = &DiskSelector{Type: "ssd"} }, []string{
			`machine.install.disk_selector: found a disk selector together with the disk "/dev/sda"; allowed: either of them; remove one; Talos would ignore the disk`,
		}},
		{"a disk that is no device", func(m *Machine) { m.Install.Disk = "sda" }, []string{
			`machine.install.disk: found "sda"; allowed: a device, such as /dev/sda or /dev/disk/by-id/…; write the whole path`,
		}},
		{"a selector of nothing", func(m *Machine) { m.Install = Install{DiskSelector: &DiskSelector{}} }, []string{
			`machine.install.disk_selector: found no property; allowed: at least one property of the disk; without one, it matches any disk; set the disk instead`,
		}},
		{"a bad selector", func(m *Machine) {
			m.Install = Install{DiskSelector: &DiskSelector{Type: "floppy", Size: "about 5"}}
		}, []string{
			`machine.install.disk_selector.type: found "floppy"; allowed: ssd, hdd, nvme or sd; choose one of them`,
			`machine.install.disk_selector.size: found "about 5"; allowed: a comparison with a size, such as ">= 100GB" or "== 1TB"; the operators are ==, >=, <=, > and <`,
		}},
		{"arguments in one", func(m *Machine) { m.Install.ExtraKernelArgs = []string{"console=ttyS0", "a b", ""} }, []string{
			`machine.install.extra_kernel_args[1]: found "a b"; allowed: one argument without spaces, such as console=ttyS0; use a separate entry for each argument`,
			`machine.install.extra_kernel_args[2]: found ""; allowed: one argument without spaces, such as console=ttyS0; use a separate entry for each argument`,
		}},
		{"an image with a line break", func(m *Machine) { m.Install.Image = "ghcr.io/x:v1\n" }, []string{
			`machine.install.image: found "ghcr.io/x:v1\n"; allowed: an image reference; remove the spaces`,
		}},
		{"a host name in capitals", func(m *Machine) { m.Hostname = "CP_1" }, []string{
			`machine.hostname: found "CP_1"; allowed: a host name in lower case, of letters, digits and dashes, with or without a domain; Kubernetes uses it as the node name`,
		}},
		{"a patch of the pool", func(m *Machine) { m.PoolPatches = []string{"machine: {}", "cluster: [1]"} }, []string{
			"pool.patches[1]: found an invalid patch (error decoding document /v1alpha1/ (line 1): error decoding " +
				"to *v1alpha1.Config: yaml: construct errors: line 1: cannot construct !!seq into v1alpha1.ClusterConfig); " +
				"allowed: " + patchShape + "; check the types of its values",
		}},
		{"its own patch", func(m *Machine) { m.Patches = []string{"hello"} }, []string{
			"machine.patches[0]: found a single value; allowed: " + patchShape + "; write a part of a machine configuration",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := testMachine(Worker)
			test.change(&m)

			_, err := Generate(testCluster("v1.13"), m, testBundle(t))
			if diff := cmp.Diff(test.want, messages(err)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestValidate_goodSettings(t *testing.T) {
	for _, endpoint := range []string{
		"https://10.0.0.10:6443", "https://[fd00::10]:6443", "https://api.example.com", "https://API.example.com:443",
		"https://localhost:6443", "https://api",
	} {
		c := testCluster("v1.13")
		c.Endpoint = endpoint
		c.CertSANs = []string{"*.example.com", "fd00::1", "10.0.0.1", "host"}
		c.PodCIDRs = []string{"fd00:10::/56"}
		c.ServiceCIDRs = []string{"fd00:20::/112"}

		if config := generated(t, c, testMachine(ControlPlane)); !strings.Contains(string(config.Bytes),
			"endpoint: "+endpoint+"\n") {
			t.Errorf("endpoint %s is not in the configuration", endpoint)
		}
	}
}

// Plans know only a part of the settings: a missing setting is no error, and known ones are checked.
func TestValidate_partialSettings(t *testing.T) {
	if err := errors.Join(ValidateCluster(Cluster{}), ValidateMachine(Cluster{}, Machine{}),
		ValidateMachine(Cluster{}, Machine{Install: Install{DiskSelector: &DiskSelector{}}})); err != nil {
		t.Errorf("nothing known yet: %v", err)
	}

	partly := Cluster{
		CertSANs: []string{"", "ok.test", "no good"}, PodCIDRs: []string{"", "10.0.0.0/8"},
		ServiceCIDRs: []string{"10.1.0.0/16"},
		CNI:          CNI{Name: CNICustom, URLs: []string{""}},
		Contract:     "v1.13", Patches: []string{"", "[]"},
		Registries: Registries{Mirrors: map[string]RegistryMirror{"docker.io": {Endpoints: []RegistryEndpoint{{}}}}},
	}

	want := []string{"cert_sans[2]", "service_cidrs[0]", "patches[1]"}

	var got []string
	for _, mistake := range FieldErrors(ValidateCluster(partly)) {
		got = append(got, mistake.Field)
	}

	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	mistakes := FieldErrors(ValidateMachine(Cluster{Contract: "v1.13"}, Machine{
		Role: Worker, Install: Install{Disk: "sda"}, PoolPatches: []string{"", "- op: add"}, Patches: []string{"kind: X"},
	}))

	got = nil
	for _, mistake := range mistakes {
		got = append(got, mistake.Field)
	}

	if diff := cmp.Diff([]string{"machine.install.disk", "pool.patches[1]", "machine.patches[0]"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCheck_needsNoSecrets(t *testing.T) {
	c, m := everything("v1.13"), everyMachine(ControlPlane, "v1.13")
	if err := checked(c, m); err != nil {
		t.Error(err)
	}

	m.Patches = append(m.Patches, "machine:\n  type: worker\n")

	mistakes := FieldErrors(checked(c, m))
	if len(mistakes) != 1 || mistakes[0].Field != "machine.patches[2]" {
		t.Errorf("got %v", mistakes)
	}
}

func TestFieldError_steps(t *testing.T) {
	for field, want := range map[string][]any{
		"endpoint":        {"endpoint"},
		"cni.urls[12]":    {"cni", "urls", 12},
		"pool.patches[0]": {"pool", "patches", 0},
		`registries.mirrors["docker.io"].endpoints[1].url`: {"registries", "mirrors", Key("docker.io"), "endpoints", 1,
			"url"},
		`registries.tls["a\"b]c"].ca`: {"registries", "tls", Key(`a"b]c`), "ca"},
		"":                            nil,
	} {
		if diff := cmp.Diff(want, (&FieldError{Field: field}).Steps()); diff != "" {
			t.Errorf("%s:\n%s", field, diff)
		}
	}
}

// checked is a checker's result for a machine.
func checked(c Cluster, m Machine) error {
	checker, err := NewChecker(c)
	if err != nil {
		return err
	}

	_, err = checker.Machine(m)

	return err
}
