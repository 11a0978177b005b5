package provider

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Only who wrote an id that cannot be read is told how ids are written.
func TestAddon_refusedImports(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(file, []byte(
		"apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\n"+
			"clusters: [{name: a, cluster: {server: 'https://10.0.0.10:6443'}}]\n"), 0o600))

	id := func(path string) string {
		text, err := json.Marshal(map[string]any{"kubeconfig": map[string]string{"path": path}, "namespace": "shop",
			"name": "shop"})
		if err != nil {
			t.Fatal(err)
		}

		return string(text)
	}

	for name, test := range map[string]struct {
		id      string
		says    string
		example bool
	}{
		"no id":      {id: "shop", says: "neither <namespace>/<name> nor", example: true},
		"no name":    {id: `{"namespace": "shop"}`, says: "name is missing", example: true},
		"no file":    {id: id(file + ".gone"), says: "Correct what the import id"},
		"no release": {id: id(file), says: "helm list"},
		"no secrets": {id: `{"secrets": "/gone.yaml", "control_plane": {"cp-1": "10.0.0.11"}, "name": "shop"}`,
			says: "talosctl gen secrets"},
	} {
		failed := s.Another(t).imports(t, test.id)
		if !failed.failed() {
			t.Fatalf("%s: it was imported", name)
		}

		failed.tells(t, test.says)

		if got := strings.Contains(show(failed.diagnostics), "metrics-server"); got != test.example {
			t.Errorf("%s: an example is shown: %t\n%s", name, got, show(failed.diagnostics))
		}
	}
}
