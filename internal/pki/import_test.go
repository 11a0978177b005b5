package pki

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// configuration is the output of talosctl 1.13.0 for the test bundle.
func configuration(t *testing.T, name string) string {
	t.Helper()

	data, err := os.ReadFile(filepath.Join("..", "machineconfig", "testdata", "talosctl", name))
	if err != nil {
		t.Fatal(err)
	}

	return string(data)
}

func TestFromMachineConfig_ofAControlPlane(t *testing.T) {
	for _, test := range []struct{ name, config string }{
		{"one document", configuration(t, "v1.11-controlplane.yaml")},
		{"several documents, comments", configuration(t, "v1.13-controlplane.yaml")},
		{"a document of an unknown kind first",
			"apiVersion: v1beta7\nkind: FutureConfig\nmachine: x\n---\n" + configuration(t, "v1.13-controlplane.yaml")},
		{"an empty document first", "---\n---\n" + configuration(t, "v1.13-controlplane.yaml")},
		{"a document with an empty kind last", configuration(t, "v1.13-controlplane.yaml") + "\n---\nkind: \"\"\nmachine: {}\n"},
		{"fields of a newer Talos", strings.Replace(configuration(t, "v1.13-controlplane.yaml"), "\nmachine:\n",
			"\nfuture: 1\nmachine:\n    future: [1]\n", 1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			bundle, err := FromMachineConfig([]byte(test.config))
			if err != nil {
				t.Fatal(err)
			}

			encoded, err := bundle.YAML()
			if err != nil {
				t.Fatal(err)
			}

			if diff := cmp.Diff(string(testFile(t)), string(encoded)); diff != "" {
				t.Errorf("not the bundle it was generated from (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFromMachineConfig_refusesWhatHasNoSecrets(t *testing.T) {
	controlPlane := configuration(t, "v1.11-controlplane.yaml")

	// without drops a line and, when it opens a section, what is indented deeper.
	without := func(key string) string {
		var (
			kept []string
			skip = -1
		)

		for line := range strings.Lines(controlPlane) {
			indent := len(line) - len(strings.TrimLeft(line, " "))
			if skip >= 0 && indent > skip {
				continue
			}

			skip = -1

			if strings.HasPrefix(line, key) {
				skip = indent

				continue
			}

			kept = append(kept, line)
		}

		return strings.Join(kept, "")
	}

	for _, test := range []struct{ name, config, want string }{
		{"a worker", configuration(t, "v1.13-worker.yaml"), "use the configuration of a control-plane machine"},
		{"nothing", "", "the v1alpha1 document"},
		{"other documents only", "apiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n", "the v1alpha1 document"},
		{"broken YAML", "machine: [", "not YAML"},
		{"no cluster", "machine: {type: controlplane}\n", "machine or cluster section is missing"},
		{"no etcd authority", without("    etcd:"), "certs.etcd: is missing"},
		{"no service account key", without("    serviceAccount:"), "certs.k8sserviceaccount: key is missing"},
		{"no machine token", without("    token: "), "trustdinfo.token is missing"},
		{"a key of another shape", strings.Replace(controlPlane, "        ca:\n            crt: ",
			"        ca:\n            crt: [hunter2]\n            x: ", 1), "do not have the format"},
		{"redacted", strings.Replace(controlPlane, keyOf(t, controlPlane, "    aggregatorCA:\n"), "REDACTED", 1),
			"certs.k8saggregator: key is not a PEM private key"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := FromMachineConfig([]byte(test.config))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got error %v, want one with %q", err, test.want)
			}

			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error quotes a value: %v", err)
			}

			assertNoSecrets(t, err.Error())
		})
	}

	if _, err := FromMachineConfig([]byte(configuration(t, "v1.13-worker.yaml"))); !errors.Is(err, ErrNotControlPlane) {
		t.Errorf("a worker gives %v, want ErrNotControlPlane", err)
	}
}
