package clusterimport

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
)

const operatorFile = "testdata/operator-state.yaml"

// The secrets in the state Secret of talos-operator are read as `kubectl get secret -o yaml` prints them. (The file
// was written with the library and the call of the operator, taloscontrolplane_controller.go, SecretBundle:
// gopkg.in/yaml.v2 of secrets.NewBundle without a contract.)
func TestReadBundleFile_ofTalosOperator(t *testing.T) {
	t.Parallel()

	content, err := os.ReadFile(operatorFile)
	if err != nil {
		t.Fatal(err)
	}

	var secret struct{ Data map[string]string }
	if err := yaml.Unmarshal(content, &secret); err != nil {
		t.Fatal(err)
	}

	within, err := base64.StdEncoding.DecodeString(secret.Data["secretBundle"])
	if err != nil {
		t.Fatal(err)
	}

	want, err := pki.Parse(within)
	if err != nil {
		t.Fatal(err)
	}

	got, err := ReadBundleFile(operatorFile)
	if err != nil {
		t.Fatal(err)
	}

	if got.Digest() != want.Digest() || got.ClusterID() == "" {
		t.Errorf("the secrets are those of %s, want %s", got.ClusterID(), want.ClusterID())
	}

	// Cluster API names another key (cluster-api-bootstrap-provider-talos 0.7, secrets.go: gopkg.in/yaml.v2 of
	// secrets.NewBundle, too).
	for name, text := range map[string]string{
		"a Secret that is written as text": "kind: Secret\nstringData:\n  secretBundle: |\n    " +
			strings.ReplaceAll(strings.TrimSpace(string(within)), "\n", "\n    ") + "\n",
		"a Secret of Cluster API": "kind: Secret\ndata: {bundle: " + secret.Data["secretBundle"] + "}\n",
	} {
		file := filepath.Join(t.TempDir(), "secret.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}

		if got, err := ReadBundleFile(file); err != nil || got.Digest() != want.Digest() {
			t.Errorf("%s gives %v", name, err)
		}
	}
}

// A Secret without secrets is distinguished from files of other kinds, and not quoted.
func TestReadBundleFile_refuses(t *testing.T) {
	t.Parallel()

	for text, says := range map[string]string{
		"kind: Secret\ndata: {kubeconfig: aHVudGVyMjI=}":    "the Secret has no secretBundle",
		"kind: Secret\ndata: {secretBundle: '###hunter22'}": "the Secret has no secretBundle",
		"kind: Secret\ndata: {secretBundle: aHVudGVyMjI=}":  "as a file of `talosctl gen secrets`",
		"kind: ConfigMap\ndata: {secretBundle: hunter22}":   "as a file of `talosctl gen secrets`",
	} {
		name := filepath.Join(t.TempDir(), "file.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}

		_, err := ReadBundleFile(name)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}
