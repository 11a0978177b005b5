package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
)

const root = "../.."

// Examples and pages name the current versions. After an update of the machinery library, `make generate` does that.
func TestPinned_nothingToChange(t *testing.T) {
	changes, err := pinned(root)
	if err != nil {
		t.Fatal(err)
	}

	for _, file := range slices.Sorted(maps.Keys(changes)) {
		t.Errorf("%s names other versions than %s and %s: run make generate, or add them to the table older",
			file, machineconfig.CurrentTalos, machineconfig.CurrentKubernetes)
	}
}

func TestPin_replaces(t *testing.T) {
	for name, test := range map[string]struct{ path, content, want string }{
		"Talos":           {content: `"v1.12.4"`, want: `"` + machineconfig.CurrentTalos + `"`},
		"Kubernetes":      {content: `"v1.33.1"`, want: `"` + machineconfig.CurrentKubernetes + `"`},
		"another program": {content: "cert-manager-v1.19.1.tgz and v1.133.0", want: "cert-manager-v1.19.1.tgz and v1.133.0"},
		"an upgrade": {path: "examples/guides/kubernetes-upgrade/main.tf", content: "v1.36.3 to v1.30.0",
			want: "v1.36.3 to " + machineconfig.CurrentKubernetes},
		"a recorded text": {path: "examples/guides/troubleshooting/a.txt", content: "v1.12.4", want: "v1.12.4"},
	} {
		if got := pin(test.path, test.content); got != test.want {
			t.Errorf("%s: %s becomes %s, want %s", name, test.content, got, test.want)
		}
	}
}

// Every entry of the table is in use.
func TestOlder_isNamed(t *testing.T) {
	for path, versions := range older {
		content, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Error(err)
		}

		for _, version := range versions {
			if !strings.Contains(string(content), version) {
				t.Errorf("%s does not name %s", path, version)
			}
		}
	}
}
