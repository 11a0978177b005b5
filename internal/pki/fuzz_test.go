package pki

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// Whatever file is given for the secrets of a cluster: no panic, what is taken is written back as it was read, and
// nothing that is said of it holds a secret. `go test -fuzz=FuzzParse ./internal/pki` looks for more; findings stay in
// testdata/fuzz.

// largestFuzzed in bytes keeps one input from taking long.
const largestFuzzed = 64 << 10

// secretsIn are the values of the test bundle that no message may show.
func secretsIn(tb testing.TB) []string {
	tb.Helper()

	var document yaml.Node
	if err := yaml.Unmarshal(testFile(tb), &document); err != nil {
		tb.Fatal(err)
	}

	var (
		values  []string
		collect func(node *yaml.Node)
	)

	collect = func(node *yaml.Node) {
		for i, inner := range node.Content {
			if inner.Kind == yaml.ScalarNode && i%2 == 1 && len(inner.Value) > 20 {
				values = append(values, inner.Value)
			}

			collect(inner)
		}
	}
	collect(&document)

	return values
}

// keepsWhatItSays checks what holds for every bundle that was taken from a file.
func keepsWhatItSays(t *testing.T, bundle *Bundle) {
	t.Helper()

	written, err := bundle.YAML()
	if err != nil {
		t.Fatalf("a bundle that was accepted cannot be written: %v", err)
	}

	again, err := Parse(written)
	if err != nil {
		t.Fatalf("a bundle that was accepted is refused when read again: %v", err)
	}

	if rewritten, err := again.YAML(); err != nil || !bytes.Equal(written, rewritten) {
		t.Errorf("reading it again gives another bundle (%v)", err)
	}

	if again.Mark() != bundle.Mark() || !SameCluster(string(written), string(written)) || len(again.RecordKeys()) == 0 {
		t.Error("reading it again gives another cluster")
	}

	if _, err := bundle.TalosClient([]string{"os:reader"}, time.Hour); err != nil {
		t.Logf("no client of Talos: %v", err)
	}

	if _, err := bundle.KubernetesClient("x", nil, time.Hour); err != nil {
		t.Logf("no client of Kubernetes: %v", err)
	}

	if text := fmt.Sprintf("%v %+v %#v %s", bundle, *bundle, bundle, bundle); strings.Contains(text,
		bundle.secrets.Secrets.BootstrapToken) && len(bundle.secrets.Secrets.BootstrapToken) > 16 {
		t.Error("it prints with a secret")
	}
}

// quotesNone checks that an error shows none of the values of the test bundle.
func quotesNone(t *testing.T, err error, secrets []string) {
	t.Helper()

	for _, secret := range secrets {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error quotes a secret: %v", err)
		}
	}
}

func FuzzParse(f *testing.F) {
	file := string(testFile(f))

	f.Add([]byte(file))
	f.Add([]byte(strings.Replace(file, "secretboxencryptionsecret", "aescbcencryptionsecret", 1)))
	f.Add([]byte(strings.Replace(file, "\n    id: ", "\n    id: &a ", 1) + "x: *a\n"))
	f.Add([]byte("certs: &a [*a]\n"))
	f.Add([]byte("cluster: {<<: {id: x}, secret: !!binary eA==}\nsecrets: {bootstraptoken: a.b}\n"))
	f.Add([]byte{})

	secrets := secretsIn(f)

	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > largestFuzzed {
			return
		}

		bundle, err := Parse(data)
		if err != nil {
			quotesNone(t, err, secrets)
			return
		}

		keepsWhatItSays(t, bundle)
	})
}

func FuzzFromMachineConfig(f *testing.F) {
	for _, name := range []string{"v1.11-controlplane.yaml", "v1.13-controlplane.yaml", "v1.13-worker.yaml"} {
		data, err := os.ReadFile("../machineconfig/testdata/talosctl/" + name)
		if err != nil {
			f.Fatal(err)
		}

		f.Add(data)
	}

	f.Add([]byte("machine: {type: controlplane}\ncluster: {etcd: {ca: null}}\n"))
	f.Add([]byte("---\n---\nkind: X\n---\nmachine: &a {type: init, ca: *a}\ncluster: *a\n"))

	secrets := secretsIn(f)

	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > largestFuzzed {
			return
		}

		bundle, err := FromMachineConfig(data)
		if err != nil {
			quotesNone(t, err, secrets)
			return
		}

		keepsWhatItSays(t, bundle)
	})
}

// FuzzCredentialFiles reads a file that is about to be overwritten.
func FuzzCredentialFiles(f *testing.F) {
	bundle := testBundle(f)

	client, err := bundle.TalosClient([]string{"os:reader"}, time.Hour)
	if err != nil {
		f.Fatal(err)
	}

	talosconfig, err := client.Talosconfig("x", []string{"10.0.0.1"}, nil)
	if err != nil {
		f.Fatal(err)
	}

	if client, err = bundle.KubernetesClient("x", nil, time.Hour); err != nil {
		f.Fatal(err)
	}

	kubeconfig, err := client.Kubeconfig("x", "https://10.0.0.1:6443", "x")
	if err != nil {
		f.Fatal(err)
	}

	ofTalos, ofKubernetes := bundle.Authority("talos").Fingerprint, bundle.Authority("kubernetes").Fingerprint
	if !OnlyTalosconfigOf(talosconfig, ofTalos) || !OnlyKubeconfigOf(kubeconfig, ofKubernetes) {
		f.Fatal("the seeds are not of the cluster")
	}

	f.Add(talosconfig)
	f.Add(kubeconfig)
	f.Add([]byte("contexts: {x: null}\n"))
	f.Add([]byte("clusters: [{cluster: {}}]\nusers: [{user: null}]\n"))

	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > largestFuzzed {
			return
		}

		// Content without an authority of the cluster is foreign.
		if OnlyTalosconfigOf(data, strings.Repeat("0", len(ofTalos))) || OnlyKubeconfigOf(data) {
			t.Error("a file is taken for one of no cluster")
		}

		// Whether it is one is all that is asked: none panics.
		_ = OnlyTalosconfigOf(data, ofTalos) || OnlyKubeconfigOf(data, ofKubernetes)

		with := func(line string) string { return ConfigFingerprint(append(bytes.Clone(data), "\n"+line+"\n"...)) }

		if with("  key: a") != with("  key: b") {
			t.Error("another private key makes another file")
		}

		if with("  crt: a") == with("  crt: b") {
			t.Error("another certificate makes no other file")
		}
	})
}
