package remainder

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/secretstest"
)

var bundleOnce = sync.OnceValues(secretstest.Generate)

func generate(t *testing.T, role machineconfig.Role, contract string, patches ...string) []byte {
	t.Helper()

	bundle, err := bundleOnce()
	if err != nil {
		t.Fatal(err)
	}

	made, err := machineconfig.Generate(
		machineconfig.Cluster{Name: "prod", Endpoint: "https://10.0.0.10:6443", KubernetesVersion: "v1.33.1", Contract: contract},
		machineconfig.Machine{Role: role, Install: machineconfig.Install{Disk: "/dev/sda"}, Patches: patches}, bundle)
	if err != nil {
		t.Fatal(err)
	}

	return made.Bytes
}

// again is what is left between a configuration and what the patches of its remainder make, tried as an import does.
func again(t *testing.T, role machineconfig.Role, contract string, active []byte, whole Whole) (Remainder, []string) {
	t.Helper()

	r, err := Of(generate(t, role, contract), active, whole)
	if err != nil {
		t.Fatal(err)
	}

	patches, err := r.Patches()
	if err != nil {
		t.Fatal(err)
	}

	left, err := Of(generate(t, role, contract, patches...), active, nil)
	if err != nil {
		t.Fatal(err)
	}

	return left, patches
}

// The patches of a remainder make the configuration that a machine has.
func TestPatches_makeWhatAMachineHas(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		contract string
		patch    string
		want     []string
		whole    Whole
	}{
		"nothing": {patch: "machine: {}"},
		"values": {
			patch: "machine: {sysctls: {net.core.somaxconn: \"1024\"}, kubelet: {extraArgs: {v: \"4\"}}}",
			want:  []string{"machine:\n  kubelet:\n    extraArgs:\n      v: \"4\"\n  sysctls:\n    net.core.somaxconn: \"1024\"\n"},
		},
		"lists are appended": {
			patch: "machine: {certSANs: [a.example.org, b.example.org]}",
			want:  []string{"machine:\n  certSANs:\n    - a.example.org\n    - b.example.org\n"},
		},
		"what is taken out": {
			patch: "machine: {features: {hostDNS: {$patch: delete}}}",
			want:  []string{"machine:\n  features:\n    hostDNS:\n      $patch: delete\n"},
		},
		"documents": {
			patch:    "apiVersion: v1alpha1\nkind: LinkConfig\nname: eth1\nmtu: 9000\n---\napiVersion: v1alpha1\nkind: KubePrismConfig\nport: 7446\n",
			contract: "v1.14",
		},
		"a document that goes": {
			patch: "apiVersion: v1alpha1\nkind: KubePrismConfig\n$patch: delete\n", contract: "v1.14",
			want: []string{"apiVersion: v1alpha1\nkind: KubePrismConfig\n$patch: delete\n"},
		},
		"a list with other elements": {
			patch: "cluster: {apiServer: {certSANs: {$patch: delete}}}\n---\ncluster: {apiServer: {certSANs: [z.example.org]}}",
		},
		"networks": {patch: "machine: {network: {interfaces: [{interface: eth0, dhcp: true, addresses: [10.0.0.1/24]}]}}"},
		"an image from elsewhere": {
			patch: "machine: {kubelet: {image: \"registry.test/kubelet:v1.33.1\"}}",
			want:  []string{"machine:\n  kubelet:\n    image: registry.test/kubelet:v1.33.1\n"},
		},
		"another version of Kubernetes is none": {
			patch: "cluster: {apiServer: {image: \"registry.k8s.io/kube-apiserver:v1.33.0\"}}",
		},
		"mirrors": {patch: "apiVersion: v1alpha1\nkind: RegistryMirrorConfig\nname: docker.io\nendpoints: [{url: https://m.test}]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			contract := test.contract
			if contract == "" {
				contract = "v1.13"
			}

			active := generate(t, machineconfig.ControlPlane, contract, strings.Split(test.patch, "\n===\n")...)

			left, patches := again(t, machineconfig.ControlPlane, contract, active, test.whole)
			if !left.Empty() || len(left.Hidden) > 0 {
				t.Errorf("left are %v and %v after\n%s", left.Places(), left.Hidden, strings.Join(patches, "===\n"))
			}

			if test.want != nil {
				if diff := cmp.Diff(test.want, patches); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}

// With every contract, patches of all kinds are read back as patches with the same result.
func TestPatches_ofEveryContract(t *testing.T) {
	t.Parallel()

	patches := []string{
		"machine: {sysctls: {a.b: \"1\"}, nodeLabels: {rack: a}, certSANs: [a.test], time: {servers: [ntp.test]}}",
		"machine: {kernel: {modules: [{name: br_netfilter}]}, sysfs: {x: \"y\"}}",
	}

	ofPlanes := []string{
		"cluster: {apiServer: {extraArgs: {v: \"3\"}, certSANs: [b.test]}, etcd: {advertisedSubnets: [10.0.0.0/8]}}",
		"cluster: {allowSchedulingOnControlPlanes: true, proxy: {disabled: true}, coreDNS: {disabled: true}}",
	}

	// From v1.14 on, the settings of the cluster and of Kubernetes are documents.
	documents := []string{"apiVersion: v1alpha1\nkind: KubeAPIServerConfig\nextraArgs: {v: \"3\"}\n---\n" +
		"apiVersion: v1alpha1\nkind: KubeProxyConfig\nenabled: false\n"}
	active := generate(t, machineconfig.ControlPlane, "v1.14", documents...)

	if left, _ := again(t, machineconfig.ControlPlane, "v1.14", active, nil); !left.Empty() || len(left.Hidden) > 0 {
		t.Errorf("documents: left are %v and %v", left.Places(), left.Hidden)
	}

	for _, contract := range []string{"v1.10", "v1.11", "v1.12", "v1.13"} {
		for _, role := range []machineconfig.Role{machineconfig.Worker, machineconfig.ControlPlane} {
			given := patches
			if role == machineconfig.ControlPlane {
				given = slices.Concat(patches, ofPlanes)
			}

			left, made := again(t, role, contract, generate(t, role, contract, given...), nil)
			if !left.Empty() || len(left.Hidden) > 0 || len(made) != 1 {
				t.Errorf("%s of %s: left are %v and %v after\n%s", role, contract, left.Places(), left.Hidden,
					strings.Join(made, "===\n"))
			}
		}
	}
}

// Values that are secret, or often are, are in no patch, with the settings around them; their paths are reported.
func TestOf_leavesSecretsOut(t *testing.T) {
	t.Parallel()

	for patch, want := range map[string]string{
		"apiVersion: v1alpha1\nkind: RegistryAuthConfig\nname: r.test\nusername: u\npassword: hunter22\n": "RegistryAuthConfig/r.test",
		"machine: {env: {PROXY_KEY: hunter22}}":                                                           "v1alpha1 machine.env",
		"cluster: {inlineManifests: [{name: a, contents: hunter22}]}":                                     "v1alpha1 cluster.inlineManifests",
		"machine: {files: [{path: /var/a, permissions: 0o600, op: create, content: hunter22}]}":           "v1alpha1 machine.files",
	} {
		r, err := Of(generate(t, machineconfig.Worker, "v1.13"), generate(t, machineconfig.Worker, "v1.13", patch), nil)
		if err != nil {
			t.Fatal(err)
		}

		patches, err := r.Patches()
		if err != nil {
			t.Fatal(err)
		}

		if strings.Contains(strings.Join(patches, ""), "hunter22") || len(r.Hidden) != 1 || r.Hidden[0].String() != want {
			t.Errorf("%s: hidden are %v, want %s, and the patches are %v", patch, r.Hidden, want, patches)
		}
	}
}

// Nothing secret that settings make is taken out by a patch.
func TestOf_keepsSecretsIn(t *testing.T) {
	t.Parallel()

	with := generate(t, machineconfig.Worker, "v1.13",
		"apiVersion: v1alpha1\nkind: RegistryAuthConfig\nname: r.test\nusername: u\npassword: hunter22\n",
		"machine: {env: {KEY: hunter22}, sysctls: {a.b: \"1\"}}")

	r, err := Of(with, generate(t, machineconfig.Worker, "v1.13"), nil)
	if err != nil {
		t.Fatal(err)
	}

	patches, err := r.Patches()
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"machine:\n  sysctls:\n    $patch: delete\n"}, patches); diff != "" || len(r.Hidden) != 2 {
		t.Errorf("hidden are %v\n%s", r.Hidden, diff)
	}
}

// What machines have in common is taken out of each, and together they are what each has.
func TestCommon_isInAll(t *testing.T) {
	t.Parallel()

	patches := map[string][]string{
		"a": {"machine: {sysctls: {x: \"1\", y: \"1\"}, certSANs: [a.test]}"},
		"b": {"machine: {sysctls: {x: \"1\", y: \"2\"}, certSANs: [a.test]}"},
		"c": {"machine: {sysctls: {x: \"1\"}, certSANs: [a.test], features: {hostDNS: {$patch: delete}}}"},
	}

	var all []Remainder

	base := generate(t, machineconfig.Worker, "v1.13")
	actives := map[string][]byte{}
	own := map[string]Remainder{}

	for name, patch := range patches {
		actives[name] = generate(t, machineconfig.Worker, "v1.13", patch...)

		r, err := Of(base, actives[name], nil)
		if err != nil {
			t.Fatal(err)
		}

		own[name] = r
		all = append(all, r)
	}

	common := Common(all...)

	shared, err := common.Patches()
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff([]string{"machine:\n  certSANs:\n    - a.test\n  sysctls:\n    x: \"1\"\n"}, shared); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	for name, r := range own {
		rest, err := r.Without(common).Patches()
		if err != nil {
			t.Fatal(err)
		}

		left, err := Of(generate(t, machineconfig.Worker, "v1.13", append(shared, rest...)...), actives[name], nil)
		if err != nil || !left.Empty() {
			t.Errorf("%s: left are %v (%v)", name, left.Places(), err)
		}
	}
}
