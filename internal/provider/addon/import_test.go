package addon_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// Only an ID that cannot be read gets an explanation of the format.
func TestAddon_refusedImports(t *testing.T) {
	t.Parallel()

	s := newAddonSite(t)
	file := kubeconfigFile(t)

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
		"no file":    {id: id(file + ".gone"), says: "Correct the cluster in the import ID"},
		"no release": {id: id(file), says: "helm list"},
		"a password": {id: `{"name": "shop", "registry": {"username": "reader", "password_wo": "hunter22"}}`,
			says: "plans show import ids", example: true},
		"no such field": {id: `{"name": "shop", "registry": {"user": "reader"}}`, says: `unknown field "user"`, example: true},
		"no secrets": {id: `{"secrets": "/gone.yaml", "control_plane": {"cp-1": "10.0.0.11"}, "name": "shop"}`,
			says: "talosctl gen secrets"},
	} {
		failed := s.Another(t).Import(t, test.id)
		if !failed.Failed() {
			t.Fatalf("%s: it was imported", name)
		}

		failed.Tells(t, test.says)

		if strings.Contains(tftest.Show(failed.Diagnostics), "hunter22") {
			t.Errorf("%s: it shows a password", name)
		}

		if got := strings.Contains(tftest.Show(failed.Diagnostics), "metrics-server"); got != test.example {
			t.Errorf("%s: an example is shown: %t\n%s", name, got, tftest.Show(failed.Diagnostics))
		}
	}
}

// The ID includes how the server of the chart is reached: the chart is compared, and the plan is empty.
func TestAddon_importTakesRegistry(t *testing.T) {
	t.Parallel()

	for name, registry := range map[string]tftest.Config{
		"without TLS": {"plain_http": true},
		"all": {"username": "reader", "pass_credentials": true, "ca": tftest.Certificate,
			"client_certificate":       tftest.Certificate,
			"insecure_skip_tls_verify": false, "plain_http": false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s, file := newAddonSite(t), kubeconfigFile(t)
			config := tftest.With(tftest.Without(baseAddon(), "cluster"), file, "kubeconfig", "path")
			config["registry"] = registry
			s.Apply(t, config).Must(t)

			s.imported(t, file, registry)
			s.ExpectEmpty(t, "after the import", config)

			if digest := tftest.Text(t, s.State, "chart_digest"); digest != "sha256:0001" {
				t.Errorf("the digest of the chart is %q", digest)
			}

			from := s.Charts.asked[len(s.Charts.asked)-1]
			if plain, _ := registry["plain_http"].(bool); from.PlainHTTP != plain || from.Username != "" ||
				from.ClientCertificate != "" {
				t.Errorf("the chart was asked for with %+v", from)
			}
		})
	}
}

// importCommand finds the ids of `terraform import`.
var importCommand = regexp.MustCompile(`terraform import talosop_addon\.\w+\s+(?:\\\s+)?(?:'([^']+)'|(\S+))`)

// Every code block of the guide is an example, which is validated with the others, or a command whose ID can be
// read.
func TestAddon_codeOfTheGuide(t *testing.T) {
	t.Parallel()

	guide, err := os.ReadFile("../../../templates/guides/addons.md.tmpl")
	tftest.Must(t, err)

	page, err := os.ReadFile("../../../examples/resources/talosop_addon/import.sh")
	tftest.Must(t, err)

	blocks := regexp.MustCompile("(?s)```(\\w*)\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
	commands := string(page)

	for _, block := range blocks {
		if block[1] != "shell" || !importCommand.MatchString(block[2]) {
			t.Errorf("nothing validates this block: %s", block[0])
		}

		commands += block[2]
	}

	found := importCommand.FindAllStringSubmatch(commands, -1)
	if len(blocks) < 2 || len(found) != strings.Count(commands, "terraform import") {
		t.Fatalf("%d blocks, %d commands in:\n%s", len(blocks), len(found), commands)
	}

	s := newAddonSite(t)

	for _, command := range found {
		failed := s.Another(t).Import(t, command[1]+command[2])
		if diagnostics := tftest.Show(failed.Diagnostics); !failed.Failed() || strings.Contains(diagnostics, "read the import ID") {
			t.Errorf("%s: %s", command[0], diagnostics)
		}
	}

	examples := regexp.MustCompile(`tffile "([^"]+)"`).FindAllStringSubmatch(string(guide), -1)
	for _, example := range examples {
		if _, err := os.Stat("../../../" + example[1]); err != nil {
			t.Error(err)
		}
	}

	folders, err := os.ReadDir("../../../examples/guides/addons")
	tftest.Must(t, err)

	if len(examples) != len(folders) {
		t.Errorf("the guide shows %d of %d examples", len(examples), len(folders))
	}
}
