package credentials_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/rotation"
)

// credentialsFile is a file for a person, of the cluster of all tests.
func credentialsFile(path string) tftest.Config {
	return tftest.Config{
		"path": path,
		"cluster": tftest.Config{"name": "prod", "endpoint": "https://10.0.0.10:6443", "secrets": tftest.Bundle(),
			"talos_endpoints": []any{"10.0.0.11", "10.0.0.12"}},
	}
}

// credentialFiles are the kinds of files for a person.
var credentialFiles = []string{"talosop_kubeconfig_file", "talosop_talosconfig_file"}

// nothingSecretIn checks that no state and no plan contains the content of the file.
func nothingSecretIn(t *testing.T, file string, outcomes ...tftest.Outcome) {
	t.Helper()

	var hidden []string

	for line := range strings.Lines(file) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if name == "client-key-data" || name == "key" || name == "crt" || name == "client-certificate-data" {
			hidden = append(hidden, value)
		}
	}

	if len(hidden) != 2 {
		t.Fatalf("the file has %d parts of a key pair", len(hidden))
	}

	for _, o := range outcomes {
		text := o.Value.String() + string(o.Private)
		for _, secret := range append(hidden, tf.MasksOf(tftest.Bundle())...) {
			if strings.Contains(text, secret) {
				t.Errorf("a secret of %d characters is in %s", len(secret), text)
			}
		}
	}
}

// A file is written once, for its owner alone, and written again for every valid reason.
func TestCredentialsFile_isKeptInOrder(t *testing.T) {
	t.Parallel()

	for _, kind := range credentialFiles {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()

			path := filepath.Join(t.TempDir(), "made", "for it", "config")
			config := credentialsFile(path)
			d := tftest.Drive(t, kind, nil)
			planned := d.Plan(t, config).Must(t)
			created := d.Apply(t, config).Must(t)
			file := tftest.ReadFile(t, path)

			nothingSecretIn(t, file, planned, created)
			d.ExpectEmpty(t, "after the create", config)

			for at, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): os.ModeDir | 0o700} {
				if info, err := os.Stat(at); err != nil || info.Mode() != want {
					t.Errorf("%s: %s, %v", at, info.Mode(), err)
				}
			}

			for _, reason := range []struct {
				status string
				change func()
			}{
				{"missing", func() { tftest.Must(t, os.Remove(path)) }},
				{"changed", func() { tftest.WriteFile(t, path, file+"# mine\n") }},
				{"changed", func() { tftest.WriteFile(t, path, "") }},
				{"changed", func() { tftest.Must(t, os.Chmod(path, 0o644)) }},
				{"due", func() { d.Set(t, "not_after", "2026-01-01T00:00:00Z") }},
			} {
				reason.change()

				before := tftest.Text(t, d.State, "fingerprint")
				if got := tftest.Text(t, d.Refresh(t).Must(t).Value, "status"); got != reason.status {
					t.Errorf("the status is %s, not %s", got, reason.status)
				}

				done := d.Apply(t, config).Must(t)
				nothingSecretIn(t, tftest.ReadFile(t, path), done)
				d.ExpectEmpty(t, "after it was "+reason.status, config)

				if tftest.Text(t, d.State, "fingerprint") == before {
					t.Errorf("%s: the fingerprint is the same", reason.status)
				}
			}

			d.Apply(t, nil).Must(t)

			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("the file is there after the destroy: %v", err)
			}
		})
	}
}

// A file is written again with each step of a rotation, and trusts what servers may show until the next one.
func TestCredentialsFile_followsARotation(t *testing.T) {
	t.Parallel()

	first, err := pki.Parse([]byte(tftest.Bundle()))
	tftest.Must(t, err)

	ahead, err := first.Rotate(rotation.TalosCA, rotation.KubernetesCA)
	tftest.Must(t, err)

	for _, kind := range credentialFiles {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()

			path := filepath.Join(t.TempDir(), "config")
			config := credentialsFile(path)
			d := tftest.Drive(t, kind, nil)
			d.Apply(t, config).Must(t)

			for i, bundle := range []*pki.Bundle{ahead, ahead.Advance(), ahead.Advance().Advance()} {
				secrets, err := bundle.YAML()
				tftest.Must(t, err)

				before := tftest.ReadFile(t, path)
				d.Apply(t, tftest.With(config, string(secrets), "cluster", "secrets")).Must(t)
				d.ExpectEmpty(t, fmt.Sprintf("after move %d", i+1), config)

				if file := tftest.ReadFile(t, path); file == before || trusted(t, file) != 2-i/2 {
					t.Errorf("after move %d it trusts %d authorities", i+1, trusted(t, file))
				}
			}

			d.Apply(t, nil).Must(t)

			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("the file is there after the destroy: %v", err)
			}
		})
	}
}

// trusted is how many authorities a kubeconfig or a talosconfig trusts.
func trusted(t *testing.T, file string) int {
	t.Helper()

	for line := range strings.Lines(file) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if key == "certificate-authority-data" || key == "ca" {
			decoded, err := base64.StdEncoding.DecodeString(value)
			tftest.Must(t, err)

			return strings.Count(string(decoded), "BEGIN CERTIFICATE")
		}
	}

	return 0
}

// A change of arguments or of the cluster writes a file again; another spelling does not.
func TestCredentialsFile_followsItsArguments(t *testing.T) {
	t.Parallel()

	for kind, changes := range map[string][]struct {
		at      []string
		value   any
		warning string
		same    bool
	}{
		"talosop_kubeconfig_file": {
			{at: []string{"ttl"}, value: "1440m", same: true},
			{at: []string{"renew_before"}, value: "8h", same: true},
			{at: []string{"user"}, value: "talosop", same: true},
			{at: []string{"cluster", "phase"}, value: "Degraded", same: true},
			{at: []string{"user"}, value: "jane"},
			{at: []string{"groups"}, value: []any{"viewers"}},
			{at: []string{"renew_before"}, value: "1h"},
			{at: []string{"cluster", "endpoint"}, value: "https://10.0.0.20:6443", warning: "the addresses of the cluster changed"},
			{at: []string{"cluster", "name"}, value: "other", warning: "the name of the cluster changed"},
			{at: []string{"cluster", "secrets"}, value: "another bundle", warning: "the secrets of the cluster changed"},
		},
		"talosop_talosconfig_file": {
			{at: []string{"roles"}, value: []any{"os:reader"}, same: true},
			{at: []string{"cluster", "endpoint"}, value: "https://10.0.0.20:6443", same: true},
			{at: []string{"roles"}, value: []any{"os:admin"}},
			{at: []string{"nodes"}, value: []any{"10.0.0.11"}},
			{at: []string{"cluster", "talos_endpoints"}, value: []any{"10.0.0.13"}, warning: "the addresses of the cluster changed"},
			{at: []string{"endpoints"}, value: []any{"lb.example.com"}, warning: "the addresses of the cluster changed"},
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()

			path := filepath.Join(t.TempDir(), "config")
			config := credentialsFile(path)
			d := tftest.Drive(t, kind, nil)
			d.Apply(t, config).Must(t)

			for _, change := range changes {
				before := tftest.ReadFile(t, path)

				if change.value == "another bundle" {
					change.value = tftest.NewBundle(t)
				}

				tftest.With(config, change.value, change.at...)

				done := d.Apply(t, config).Must(t)
				if rewritten := tftest.ReadFile(t, path) != before; rewritten == change.same {
					t.Errorf("%v: the file was written again: %t", change.at, rewritten)
				}

				if diagnostics := tftest.Show(done.Diagnostics); !strings.Contains(diagnostics, change.warning) || change.warning == "" &&
					diagnostics != "" {
					t.Errorf("%v: the plan says: %s", change.at, diagnostics)
				}

				d.ExpectEmpty(t, "after "+strings.Join(change.at, "."), config)
			}
		})
	}
}

// A file that contains anything except credentials of the cluster is neither overwritten nor deleted.
func TestCredentialsFile_losesNoFileOfAPerson(t *testing.T) {
	t.Parallel()

	for _, kind := range credentialFiles {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()

			path := filepath.Join(t.TempDir(), "config")
			config := credentialsFile(path)
			d := tftest.Drive(t, kind, nil)

			refused := func(when, content string) {
				t.Helper()

				tftest.WriteFile(t, path, content)

				planned := d.Plan(t, config)
				if diagnostics := tftest.Show(planned.Diagnostics); !planned.Failed() || !strings.Contains(diagnostics, `AttributeName("path")`) ||
					!strings.Contains(diagnostics, "[file_path_taken]") {
					t.Errorf("%s: the plan says: %s", when, diagnostics)
				}

				if tftest.ReadFile(t, path) != content {
					t.Errorf("%s: the file is lost", when)
				}
			}

			refused("before the create", "apiVersion: v1\nkind: Config\n")
			tftest.Must(t, os.Remove(path))

			// It appears between plan and apply.
			planned := d.Plan(t, config).Must(t)
			tftest.WriteFile(t, path, "mine")

			if done := d.ApplyPlanned(t.Context(), t, config, planned); !done.Failed() || tftest.ReadFile(t, path) != "mine" {
				t.Errorf("the apply says: %s", tftest.Show(done.Diagnostics))
			}

			tftest.Must(t, os.Remove(path))
			d.Apply(t, config).Must(t)
			own := tftest.ReadFile(t, path)

			tftest.WriteFile(t, path, "merged by a person")
			d.Refresh(t).Must(t)
			refused("after the create", "merged by a person")

			done := d.Apply(t, nil).Must(t)
			if diagnostics := tftest.Show(done.Diagnostics); !strings.Contains(diagnostics, "[credentials_file_stays]") || tftest.ReadFile(t, path) == "" {
				t.Errorf("the destroy says: %s", diagnostics)
			}

			// A folder and a link are foreign, and a file of a lost state is not.
			tftest.Must(t, os.Remove(path))
			tftest.WriteFile(t, path+".elsewhere", own)
			tftest.Must(t, os.Symlink(path+".elsewhere", path))

			if !d.Plan(t, config).Failed() {
				t.Error("a link is replaced")
			}

			tftest.Must(t, os.Remove(path))
			tftest.WriteFile(t, path, own)
			d.Apply(t, config).Must(t)

			if tftest.ReadFile(t, path) == own {
				t.Error("the file was not written again")
			}
		})
	}
}

// Mistakes are found before anything is made.
func TestCredentialsFile_validates(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		kind, attribute string
		value           any
		says            string
	}{
		{"talosop_kubeconfig_file", "path", " ", "found a string of spaces"},
		{"talosop_kubeconfig_file", "path", "~/.kube/talosop", `[file_path_with_tilde]`},
		{"talosop_kubeconfig_file", "path", "kube/", "[file_path_of_folder]"},
		{"talosop_kubeconfig_file", "ttl", "0s", "[invalid_file_ttl]"},
		{"talosop_kubeconfig_file", "ttl", "721h", `[invalid_file_ttl] Invalid ttl at AttributeName("ttl"): found "721h"`},
		{"talosop_kubeconfig_file", "ttl", "a day", "[invalid_duration]"},
		{"talosop_kubeconfig_file", "renew_before", "24h", "found \"24h\" with a `ttl` of 24h0m0s"},
		{"talosop_kubeconfig_file", "renew_before", "-1s", "[invalid_renew_before]"},
		{"talosop_kubeconfig_file", "user", "", "[blank_text]"},
		{"talosop_kubeconfig_file", "groups", []any{"a", ""}, "found an empty string"},
		{"talosop_talosconfig_file", "roles", []any{"os:reader", "admin"}, `found "admin". Allowed: os:admin`},
		{"talosop_talosconfig_file", "roles", []any{}, "[no_roles]"},
	} {
		config := credentialsFile("config")
		config[test.attribute] = test.value

		diagnostics := tftest.Show(tftest.Validate(t, test.kind, config))
		if !strings.Contains(strings.ToLower(diagnostics), strings.ToLower(test.says)) || strings.Count(diagnostics, "\n") != 1 ||
			!strings.Contains(diagnostics, `AttributeName("`+test.attribute+`")`) {
			t.Errorf("%s = %v: %s", test.attribute, test.value, diagnostics)
		}
	}

	for _, kind := range credentialFiles {
		if diagnostics := tftest.Show(tftest.Validate(t, kind, credentialsFile("config"))); diagnostics != "" {
			t.Errorf("%s: %s", kind, diagnostics)
		}
	}
}

// The plan refuses a talosconfig that would lead to no machine, and says why.
func TestCredentialsFile_leadsSomewhere(t *testing.T) {
	t.Parallel()

	host := tftest.Config{"kubeconfig_path": "~/.kube/config", "namespace": "talos"}

	for name, test := range map[string]struct {
		change func(cluster, config tftest.Config)
		says   string
	}{
		"containers": {func(cluster, _ tftest.Config) { cluster["mode"], cluster["host"] = "container", host },
			"Only the host cluster reaches the addresses"},
		"containers with endpoints": {func(cluster, config tftest.Config) {
			cluster["mode"], cluster["host"], config["endpoints"] = "container", host, []any{"10.1.0.1"}
		}, ""},
		"metal without endpoints": {func(cluster, _ tftest.Config) { delete(cluster, "talos_endpoints") },
			"Neither `endpoints` nor the cluster handle"},
	} {
		config := credentialsFile(filepath.Join(t.TempDir(), "config"))
		cluster, _ := config["cluster"].(tftest.Config)
		test.change(cluster, config)

		d := tftest.Drive(t, "talosop_talosconfig_file", nil)

		if diagnostics := tftest.Show(d.Plan(t, config).Diagnostics); (test.says == "") != (diagnostics == "") ||
			!strings.Contains(diagnostics, test.says) {
			t.Errorf("%s: %s", name, diagnostics)
		}
	}
}

// Every value may be unknown in a plan: it causes no error, and the forecast of the plan is correct.
func TestCredentialsFile_unknownValues(t *testing.T) {
	t.Parallel()

	for _, kind := range credentialFiles {
		config := credentialsFile(filepath.Join(t.TempDir(), "config"))
		config["ttl"], config["renew_before"] = "12h", "1h"
		full := tftest.ValueOf(t, tftest.TypeOf(t, kind), config)

		// The create first: it is refused where the update has its file.
		for _, when := range []string{"create", "update"} {
			d := tftest.Drive(t, kind, nil)

			if when == "update" {
				d.Apply(t, config).Must(t)
			}

			final := d.PlanValue(t, full).Must(t).Value

			tftest.EveryUnknown(t, full, func(at *tftypes.AttributePath, v tftypes.Value) {
				validated, err := d.Server.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{
					TypeName: d.Name, Config: tftest.Dynamic(t, v),
					ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
				})
				if err != nil || len(validated.Diagnostics) > 0 {
					t.Errorf("validate with unknown %s: %v %s", at, err, tftest.Show(validated.Diagnostics))
				}

				tftest.KeepsItsWord(t, when, at, d.PlanValue(t, v).Must(t).Value, final)
			})
		}
	}
}

// Changes of a cluster that do not affect the file keep it, even when the plan could not know.
func TestCredentialsFile_unknownTurnsOutTheSame(t *testing.T) {
	t.Parallel()

	path := filepath.Join(t.TempDir(), "config")
	config := credentialsFile(path)
	d := tftest.Drive(t, "talosop_kubeconfig_file", nil)
	d.Apply(t, config).Must(t)
	file := tftest.ReadFile(t, path)

	unknown := credentialsFile(path)
	unknown["cluster"] = tftest.Unknown{}

	planned := d.Plan(t, unknown).Must(t)
	if got := tftest.Text(t, planned.Value, "fingerprint"); got != "unknown" {
		t.Errorf("the fingerprint is planned as %s", got)
	}

	d.ApplyPlanned(t.Context(), t, config, planned).Must(t)

	if tftest.ReadFile(t, path) != file {
		t.Error("the file was written again")
	}

	rest, err := clientcmd.RESTConfigFromKubeConfig([]byte(file))
	if err != nil || rest.Host != "https://10.0.0.10:6443" {
		t.Errorf("the file leads to %v: %v", rest, err)
	}
}

// A file that cannot be read counts as unchanged: it is not written again, and a warning says so.
func TestCredentialsFile_thatCannotBeRead(t *testing.T) {
	t.Parallel()

	for _, kind := range credentialFiles {
		folder := filepath.Join(t.TempDir(), "made")
		config := credentialsFile(filepath.Join(folder, "config"))
		d := tftest.Drive(t, kind, nil)
		before := d.Apply(t, config).Must(t).Value

		tftest.Must(t, os.RemoveAll(folder))
		tftest.WriteFile(t, folder, "no folder any more")

		seen := d.Refresh(t).Must(t)
		if diagnostics := tftest.Show(seen.Diagnostics); !strings.Contains(diagnostics, "[credentials_not_read]") ||
			!strings.Contains(diagnostics, "not a directory") {
			t.Errorf("%s: the refresh says: %s", kind, diagnostics)
		}

		if !seen.Value.Equal(before) {
			t.Errorf("%s: state has %s now", kind, seen.Value)
		}

		if planned := d.Plan(t, config).Must(t); !planned.Value.Equal(before) {
			t.Errorf("%s: the plan has %s", kind, planned.Value)
		}
	}
}
