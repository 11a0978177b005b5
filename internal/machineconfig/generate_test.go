package machineconfig

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

var contracts = []string{"v1.10", "v1.11", "v1.12", "v1.13", "v1.14"}

// testBundle is parsed once; no cluster uses it.
var parsedBundle = sync.OnceValues(func() (*pki.Bundle, error) {
	data, err := os.ReadFile("../pki/testdata/test-only-secrets.yaml")
	if err != nil {
		return nil, err
	}

	return pki.Parse(data)
})

func testBundle(tb testing.TB) *pki.Bundle {
	tb.Helper()

	bundle, err := parsedBundle()
	if err != nil {
		tb.Fatal(err)
	}

	return bundle
}

// testCluster has what is required, and a Kubernetes version that every contract supports.
func testCluster(contract string) Cluster {
	return Cluster{Name: "test-only", Endpoint: "https://10.0.0.10:6443", KubernetesVersion: "v1.33.1", Contract: contract}
}

func testMachine(role Role) Machine {
	return Machine{Role: role, Install: Install{Disk: "/dev/sda"}}
}

func generated(tb testing.TB, c Cluster, m Machine) Config {
	tb.Helper()

	config, err := Generate(c, m, testBundle(tb))
	if err != nil {
		tb.Fatalf("generate: %v", err)
	}

	return config
}

// A cluster made with talosctl and described to the provider must not be changed by it.
func TestGenerate_asTalosctlDoes(t *testing.T) {
	for _, contract := range []string{"v1.11", "v1.13"} {
		for _, role := range []Role{ControlPlane, Worker} {
			t.Run(contract+" "+string(role), func(t *testing.T) {
				theirs, err := os.ReadFile(filepath.Join("testdata", "talosctl", contract+"-"+string(role)+".yaml"))
				if err != nil {
					t.Fatal(err)
				}

				c, m := testCluster(contract), testMachine(role)
				c.CertSANs = []string{"api.test.example"}
				c.DNSDomain = "cluster.test"
				c.Patches = []string{"machine:\n  sysctls:\n    net.core.somaxconn: \"65535\"\n"}
				m.Install.Image = "ghcr.io/siderolabs/installer:" + contract + ".0"

				ours := generated(t, c, m)

				changes, err := Diff(theirs, ours.Bytes)
				if err != nil {
					t.Fatal(err)
				}

				for _, change := range changes {
					t.Error(change)
				}

				digest, err := Digest(theirs)
				if err != nil {
					t.Fatal(err)
				}

				if digest != ours.Digest {
					t.Errorf("digest of talosctl's file %s, of ours %s", digest, ours.Digest)
				}
			})
		}
	}
}

var update = testenv.UpdateGolden()

// longSecret shortens certificates and keys, so that golden files can be read.
var (
	longSecret = regexp.MustCompile(`(?m)^(\s+(?:crt|key): )[A-Za-z0-9+/=]{80,}$`)
	longPEM    = regexp.MustCompile(`((?:cert:|key:|privateKey:|-) \|\n +)-----BEGIN [^-]+-----\n(?: +[A-Za-z0-9+/=]+\n)+ +-----END [^-]+-----\n`)
)

func compareGolden(t *testing.T, name string, config Config) {
	t.Helper()

	// The second line is the sum of all bytes, shortened parts included, with any quotes: machinery 1.14 quotes
	// words such as off differently than 1.13.
	sum := sha256.Sum256(bytes.ReplaceAll(config.Bytes, []byte("'"), []byte(`"`)))
	short := longPEM.ReplaceAll(longSecret.ReplaceAll(config.Bytes, []byte("${1}shortened")), []byte("${1}shortened\n"))
	got := fmt.Sprintf("# %s\n# bytes %x\n%s", config.Digest, sum, short)
	path := filepath.Join("testdata", "golden", name+".yaml")

	if update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (UPDATE_GOLDEN=1 accepts it; machines of users change with it) (-want +got):\n%s", path, diff)
	}
}

// everything sets every field, so that the golden files show where each of them goes.
func everything(contract string) Cluster {
	c := testCluster(contract)
	c.CertSANs = []string{"api.test.example", "192.0.2.1"}
	c.PodCIDRs = []string{"10.200.0.0/16", "fd00:200::/56"}
	c.ServiceCIDRs = []string{"10.201.0.0/20", "fd00:201::/112"}
	c.DNSDomain = "test.local"
	c.CNI = CNI{Name: CNIFlannel, Flannel: &Flannel{ExtraArgs: []string{"--iface=eth1"},
		KubeNetworkPolicies: contract >= "v1.13"}}
	c.KubeProxy = new(false)
	c.AllowSchedulingOnControlPlanes = true
	c.AirGapped = true
	c.ImageCache = true
	c.Registries = Registries{
		Mirrors: map[string]RegistryMirror{
			"docker.io": {Endpoints: []RegistryEndpoint{{URL: "https://mirror.test:5000/hub", OverridePath: true}}},
			"*": {Endpoints: []RegistryEndpoint{{URL: "http://10.0.0.5:5000"}, {URL: "http://10.0.0.6:5000"}},
				SkipFallback: true},
		},
		Auth: map[string]RegistryAuth{"mirror.test:5000": {Username: "puller", Password: "hunter2hunter2"},
			"other.test": {IdentityToken: "identity-token"}},
		TLS: map[string]RegistryTLS{"mirror.test:5000": {InsecureSkipVerify: true}},
	}
	c.Patches = []string{
		"cluster:\n  controllerManager:\n    extraArgs:\n      bind-address: 0.0.0.0\n",
		"machine:\n  nodeLabels:\n    from: cluster\n  sysctls:\n    order: cluster\n",
	}

	if contract >= "v1.14" {
		c.Patches = []string{"machine:\n  sysctls:\n    order: cluster\n---\n" +
			"apiVersion: v1alpha1\nkind: KubeNodeConfig\nlabels:\n  from: cluster\n"}
	}

	return c
}

func everyMachine(role Role, contract string) Machine {
	m := machineWithEverything(role)
	if contract < "v1.14" {
		return m
	}

	m.Install.ExtraKernelArgs = nil
	m.PoolPatches = []string{"machine:\n  sysctls:\n    order: pool\n---\n" +
		"apiVersion: v1alpha1\nkind: KubeNodeConfig\ntaints:\n  dedicated: batch:NoSchedule\n"}

	if role == ControlPlane {
		m.PoolPatches = append(m.PoolPatches,
			"apiVersion: v1alpha1\nkind: KubeControllerManagerConfig\nextraArgs:\n  bind-address: 0.0.0.0\n")
	}

	return m
}

func machineWithEverything(role Role) Machine {
	return Machine{
		Role: role, Hostname: "node-1",
		Install: Install{
			DiskSelector: &DiskSelector{Size: ">= 100GB", Type: "nvme", Model: "Samsung*"}, Wipe: true,
			Image:           "factory.talos.dev/metal-installer/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba:v1.10.0",
			ExtraKernelArgs: []string{"console=ttyS0"},
		},
		PoolPatches: []string{"machine:\n  nodeTaints:\n    dedicated: batch:NoSchedule\n  sysctls:\n    order: pool\n"},
		Patches: []string{"machine:\n  sysctls:\n    order: machine\n",
			"apiVersion: v1beta1\nkind: FutureConfig\nname: x\n# kept\nlist: [1, 2]\n"},
	}
}

func TestGenerate_asRecorded(t *testing.T) {
	for _, contract := range contracts {
		for _, role := range []Role{ControlPlane, Worker} {
			t.Run(contract+" "+string(role), func(t *testing.T) {
				compareGolden(t, contract+"-"+string(role), generated(t, testCluster(contract), testMachine(role)))
				compareGolden(t, contract+"-"+string(role)+"-everything", generated(t, everything(contract), everyMachine(role, contract)))
			})
		}
	}
}

func TestGenerate_isDeterministic(t *testing.T) {
	for _, contract := range []string{"v1.11", "v1.13", "v1.14"} {
		first := generated(t, everything(contract), everyMachine(ControlPlane, contract))

		for i := range 50 {
			again := generated(t, everything(contract), everyMachine(ControlPlane, contract))
			if !bytes.Equal(first.Bytes, again.Bytes) || first.Digest != again.Digest {
				t.Fatalf("contract %s, generation %d differs:\n%s", contract, i, cmp.Diff(string(first.Bytes), string(again.Bytes)))
			}
		}
	}
}

func TestGenerator_keepsMachinesApart(t *testing.T) {
	for _, contract := range contracts {
		generator, err := NewGenerator(everything(contract), testBundle(t))
		if err != nil {
			t.Fatal(err)
		}

		var wait sync.WaitGroup

		for i := range 24 {
			wait.Go(func() {
				m := everyMachine([]Role{ControlPlane, Worker}[i%2], contract)
				m.Hostname = fmt.Sprintf("node-%d", i%5)
				m.Patches = append(m.Patches, fmt.Sprintf("machine:\n  certSANs: [10.9.9.%d]\n", i%3))

				got, err := generator.Machine(m)
				if err != nil {
					t.Error(err)

					return
				}

				alone, err := Generate(everything(contract), m, testBundle(t))
				if err != nil {
					t.Error(err)

					return
				}

				if !bytes.Equal(got.Bytes, alone.Bytes) {
					t.Errorf("machine %d differs from the same one generated alone:\n%s", i,
						cmp.Diff(string(alone.Bytes), string(got.Bytes)))
				}
			})
		}

		wait.Wait()
	}
}

// machinery loads what it made, unless it has a document of an unknown kind.
func TestGenerate_isLoadedByTalos(t *testing.T) {
	for _, contract := range contracts {
		m := everyMachine(Worker, contract)
		m.Patches = m.Patches[:1]

		provider, err := configloader.NewFromBytes(generated(t, everything(contract), m).Bytes)
		if err != nil {
			t.Fatal(err)
		}

		if provider.Machine().Type().String() != "worker" || !provider.CompleteForBoot() {
			t.Errorf("contract %s: %s", contract, provider.Machine().Type())
		}
	}
}

func TestGenerate_givesWorkersNoPrivateKeys(t *testing.T) {
	for _, contract := range contracts {
		worker := string(generated(t, everything(contract), everyMachine(Worker, contract)).Bytes)

		encoded, err := testBundle(t).YAML()
		if err != nil {
			t.Fatal(err)
		}

		for line := range strings.Lines(string(encoded)) {
			if key, value, _ := strings.Cut(strings.TrimSpace(line), ": "); key == "key" && strings.Contains(worker, value) {
				t.Errorf("contract %s: a worker has a private key", contract)
			}
		}
	}
}

func TestConfig_doesNotPrint(t *testing.T) {
	c, m := everything("v1.13"), everyMachine(ControlPlane, "v1.13")
	config := generated(t, c, m)
	pointer := &config

	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		text := fmt.Sprintf(verb+verb+verb+verb+verb, config, pointer, c, m, struct{ R Registries }{c.Registries})
		for _, secret := range []string{"hunter2", "identity-token", "BEGIN", "bind-address",
			testBundle(t).Secrets().Cluster.Secret} {
			if strings.Contains(text, secret) || strings.Contains(text, fmt.Sprintf("%x", secret)) {
				t.Errorf("%s shows %s: %.300s", verb, secret, text)
			}
		}
	}
}

func BenchmarkGenerator(b *testing.B) {
	generator, err := NewGenerator(everything("v1.13"), testBundle(b))
	if err != nil {
		b.Fatal(err)
	}

	for i := 0; b.Loop(); i++ {
		m := everyMachine(Worker, "v1.13")
		m.Hostname = fmt.Sprintf("worker-%d", i)

		if _, err := generator.Machine(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDigest(b *testing.B) {
	config, err := Generate(everything("v1.13"), everyMachine(ControlPlane, "v1.13"), testBundle(b))
	if err != nil {
		b.Fatal(err)
	}

	for b.Loop() {
		if _, err := Digest(config.Bytes); err != nil {
			b.Fatal(err)
		}
	}
}
