package addon_test

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

const resourceType = "talosop_addon"

// baseAddon is a valid configuration.
func baseAddon() tftest.Config {
	return tftest.Config{
		"cluster":    tftest.Config{"name": "prod", "endpoint": "https://10.0.0.10:6443", "secrets": tftest.Bundle()},
		"name":       "metrics-server",
		"namespace":  "kube-system",
		"chart":      "metrics-server",
		"repository": "https://charts.example.org",
		"version":    "3.13.0",
	}
}

// fullAddon is a configuration with every argument set.
func fullAddon() tftest.Config {
	base := baseAddon()

	for name, value := range (tftest.Config{
		"create_namespace": false, "devel": false, "dependency_update": false, "verify": false, "keyring": "ring.gpg",
		"registry": tftest.Config{
			"username": "user", "password_wo": "correct horse", "pass_credentials": true, "ca": tftest.Certificate,
			"client_certificate": tftest.Certificate,
			"client_key_wo":      "battery staple", "insecure_skip_tls_verify": false, "plain_http": false,
		},
		"values":        []any{"replicas: 2\nimage: {tag: v1}\n"},
		"set":           []any{tftest.Config{"name": "image.tag", "value": "v2", "type": "string"}},
		"set_sensitive": []any{tftest.Config{"name": "token", "value": "a-secret-token"}},
		"values_wo":     []any{"password: only-in-the-cluster\n"}, "values_wo_version": "1",
		"patches": []any{tftest.Config{
			"patch": "- {op: add, path: /metadata/labels/a, value: b}", "target": tftest.Config{
				"group": "apps", "version": "v1", "kind": "Deployment", "name": "metrics-.*", "namespace": "kube-system",
				"label_selector":      "a=b",
				"annotation_selector": "c=d",
			},
		}},
		"wait": true, "wait_for_jobs": true, "wait_timeout": "5m", "atomic": true, "cleanup_on_fail": true,
		"take_ownership": false, "force": false,
		"max_history": 5, "skip_crds": false, "upgrade_crds": true, "include_crds": false, "disable_hooks": false,
		"disable_openapi_validation": false,
		"skip_schema_validation":     false, "enable_dns": false, "sub_notes": true, "description": "by Terraform",
		"reuse_values":            false,
		"reset_then_reuse_values": false, "drift_detection": "presence",
		"ignore_drift": []any{tftest.Config{"kind": "Deployment", "name": "web-*", "namespace": "a",
			"paths": []any{"spec.replicas"}}},
		"keep_history": true, "adopt": true, "on_unreachable": "forget", "on_incomplete": "warn",
		"timeouts": tftest.Config{"create": "1h", "read": "10s", "update": "1h", "delete": "1m"},
	}) {
		base[name] = value
	}

	return base
}

func TestAddon_invalidConfiguration(t *testing.T) {
	t.Parallel()

	for name, right := range map[string]tftest.Config{"least": baseAddon(), "full": fullAddon()} {
		if got := tftest.Validate(t, resourceType, right); len(got) > 0 {
			t.Errorf("the %s right one: %s", name, tftest.Show(got))
		}
	}

	local := func() tftest.Config {
		return tftest.With(tftest.Without(tftest.Without(baseAddon(), "repository"), "version"), "./charts/web", "chart")
	}

	for name, test := range map[string]struct {
		base    tftest.Config
		Path    []string
		Value   any
		At      string
		says    []string
		warning bool
	}{
		"name":        {Path: []string{"name"}, Value: "Web", says: []string{`"Web"`, "1 to 53"}},
		"long name":   {Path: []string{"name"}, Value: strings.Repeat("n", 54), says: []string{"1 to 53"}},
		"dotted name": {Path: []string{"name"}, Value: "a..b", says: []string{`"a..b"`}},
		"namespace":   {Path: []string{"namespace"}, Value: "a.b", says: []string{`"a.b"`, "1 to 63"}},
		"no cluster": {base: tftest.Without(baseAddon(), "cluster"), Path: []string{"wait"}, Value: true,
			says: []string{"[addon_cluster]", "neither"}},
		"two clusters": {Path: []string{"kubeconfig"}, Value: tftest.Config{"path": "x"},
			says: []string{"[addon_cluster]", "both"}},
		"empty access": {base: tftest.Without(baseAddon(), "cluster"), Path: []string{"kubeconfig"}, Value: tftest.Config{},
			says: []string{"[addon_kubeconfig]", "Found 0"}},
		"two kubeconfigs": {base: tftest.Without(baseAddon(), "cluster"), Path: []string{"kubeconfig"},
			Value: tftest.Config{"path": "a", "content": "b"}, says: []string{"[addon_kubeconfig]", "Found 2"}},
		"no kubeconfig": {base: tftest.Without(baseAddon(), "cluster"), Path: []string{"kubeconfig"},
			Value: tftest.Config{"content": "the: secret"},
			At:    "kubeconfig", says: []string{"[addon_kubeconfig_content]"}},
		"secrets": {Path: []string{"cluster", "secrets"}, Value: "nothing", At: "cluster",
			says: []string{"[invalid_secrets]"}},
		"endpoint": {Path: []string{"cluster", "endpoint"}, Value: "10.0.0.1", At: "cluster",
			says: []string{"[addon_endpoint]", `"10.0.0.1"`}},
		"no repository": {base: tftest.Without(baseAddon(), "repository"), Path: []string{"chart"}, Value: "web",
			says: []string{"[addon_chart_without_repository]", "./web"}},
		"URL and repository": {Path: []string{"chart"}, Value: "oci://ghcr.io/a/web", says: []string{"[addon_chart_with_repository]", "URL"}},
		"path and repository": {base: tftest.Without(baseAddon(), "version"), Path: []string{"chart"}, Value: "./web",
			says: []string{"[addon_chart_with_repository]", "path"}},
		"scheme": {Path: []string{"repository"}, Value: "git://example.org",
			says: []string{"[addon_url]"}},
		"no host": {Path: []string{"repository"}, Value: "charts.example.org",
			says: []string{"[addon_url]"}},
		"credentials in URL": {Path: []string{"repository"}, Value: "https://user:hunter22@example.org",
			says: []string{"[addon_url_with_credentials]"}},
		"http": {Path: []string{"repository"}, Value: "http://example.org", says: []string{"[addon_url_without_tls]"},
			warning: true},
		"tag": {base: tftest.Without(baseAddon(), "repository"), Path: []string{"chart"},
			Value: "oci://ghcr.io/a/web:1.0.0", says: []string{"[addon_url_with_tag]"}},
		"no version": {base: tftest.Without(baseAddon(), "version"), Path: []string{"wait"}, Value: true, At: "chart",
			says: []string{"[addon_version_missing]"}, warning: true},
		"bad version": {Path: []string{"version"}, Value: "newest", says: []string{"[addon_version]", `"newest"`}},
		"version of a path": {base: local(), Path: []string{"version"}, Value: "1.0.0",
			says: []string{"[addon_version_unused]"}, warning: true},
		"devel and version": {Path: []string{"devel"}, Value: true, says: []string{"[addon_devel_unused]"}, warning: true},
		"half a login": {Path: []string{"registry"}, Value: tftest.Config{"username": "u"}, At: "registry",
			says: []string{"[addon_registry_half]", "without `registry.password_wo`"}},
		"other half": {Path: []string{"registry"}, Value: tftest.Config{"password_wo": "p"}, At: "registry",
			says: []string{"[addon_registry_half]", "without `registry.username`"}},
		"half a certificate": {Path: []string{"registry"}, Value: tftest.Config{"client_certificate": "c"}, At: "registry",
			says: []string{"[addon_registry_half]", "registry.client_key_wo"}},
		"any certificate": {Path: []string{"registry"},
			Value: tftest.Config{"ca": "c", "insecure_skip_tls_verify": true}, says: []string{"[addon_registry_insecure_with_ca]"}},
		"registry of a path": {base: local(), Path: []string{"registry"}, Value: tftest.Config{"ca": "c"},
			says: []string{"[addon_registry_unused]"}, warning: true},
		"YAML": {Path: []string{"values"}, Value: []any{"a: 1\n", "a: 1\nb: 1\nb: 2\n"}, At: "values",
			says: []string{"[addon_values_document]", "values[1]", "line"}},
		"no mapping": {Path: []string{"values"}, Value: []any{"- a\n"}, says: []string{"[addon_values_document]", "values[0]"}},
		"type of a setting": {Path: []string{"set"},
			Value: []any{tftest.Config{"name": "a", "value": "{", "type": "json"}}, says: []string{"[addon_set]", "set[0]"}},
		"unknown type": {Path: []string{"set"},
			Value: []any{tftest.Config{"name": "a", "value": "1", "type": "number"}}, At: "set",
			says: []string{"[addon_set_type]", "set[0]", `"number"`}},
		"short secret": {Path: []string{"set_sensitive"}, Value: []any{tftest.Config{"name": "a", "value": "xyz"}},
			At: "set_sensitive", says: []string{"[addon_secret_too_short]"}, warning: true},
		"secret setting": {Path: []string{"set_sensitive"},
			Value: []any{tftest.Config{"name": "a", "value": "hunter22", "type": "json"}}, says: []string{"[addon_set]", "set_sensitive[0]"}},
		"secret YAML": {base: fullAddon(), Path: []string{"values_wo"}, Value: []any{"hunter22: ["},
			says: []string{"[addon_values_document]", "values_wo[0]"}},
		"no values_wo_version": {Path: []string{"values_wo"}, Value: []any{"a: 1"}, At: "values_wo",
			says: []string{"[addon_values_without_version]"}},
		"no values_wo": {Path: []string{"values_wo_version"}, Value: "1", At: "values_wo_version",
			says: []string{"[addon_version_without_values]"}},
		"patch": {Path: []string{"patches"}, Value: []any{tftest.Config{"patch": "nothing"}}, At: "patches",
			says: []string{"[addon_patch]", "patches[0]", "is neither"}},
		"operations, no target": {Path: []string{"patches"}, Value: []any{tftest.Config{"patch": "- {op: remove, path: /a}"}},
			says: []string{"[addon_patch]", "patches[0]", "target"}},
		"atomic, no wait": {base: tftest.With(baseAddon(), false, "wait"), Path: []string{"atomic"}, Value: true,
			says: []string{"[addon_option_without_wait]"}},
		"jobs, no wait": {base: tftest.With(baseAddon(), false, "wait"), Path: []string{"wait_for_jobs"}, Value: true,
			says: []string{"[addon_option_without_wait]"}},
		"CRDs in and out": {base: tftest.With(baseAddon(), true, "skip_crds"), Path: []string{"include_crds"}, Value: true,
			says: []string{"[addon_options_together]", "skip_crds"}},
		"CRDs out and up": {base: tftest.With(baseAddon(), true, "skip_crds"), Path: []string{"upgrade_crds"}, Value: true,
			says: []string{"[addon_options_together]", "upgrade_crds"}, At: "skip_crds"},
		"values of before": {base: tftest.With(baseAddon(), true, "reuse_values"), Path: []string{"reset_then_reuse_values"},
			Value: true, says: []string{"[addon_options_together]"}},
		"history":       {Path: []string{"max_history"}, Value: -1, says: []string{"[addon_max_history]", "Found -1"}},
		"timeout":       {Path: []string{"wait_timeout"}, Value: "soon", says: []string{"[invalid_duration]", `"soon"`}},
		"short timeout": {Path: []string{"wait_timeout"}, Value: "1ms", says: []string{"[addon_duration_too_short]"}},
		"no keyring": {Path: []string{"verify"}, Value: true, At: "verify",
			says: []string{"[addon_verify_without_keyring]"}},
		"ignores all": {Path: []string{"ignore_drift"}, Value: []any{tftest.Config{}},
			says: []string{"[addon_ignore_drift_empty]"}},
		"pattern": {Path: []string{"ignore_drift"}, Value: []any{tftest.Config{"name": "web-["}},
			At: "ignore_drift", says: []string{"[addon_ignore_drift_pattern]", `"web-["`}},
		"no path": {Path: []string{"ignore_drift"}, Value: []any{tftest.Config{"kind": "A", "paths": []any{}}},
			says: []string{"[addon_ignore_drift_paths]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			base := test.base
			if base == nil {
				base = baseAddon()
			}

			got := tftest.Validate(t, resourceType, tftest.With(base, test.Value, test.Path...))
			if len(got) != 1 || (got[0].Severity == tfprotov6.DiagnosticSeverityWarning) != test.warning {
				t.Fatalf("it says %s", tftest.Show(got))
			}

			for _, words := range test.says {
				if !strings.Contains(tftest.Show(got), words) {
					t.Errorf("it does not say %q: %s", words, tftest.Show(got))
				}
			}

			if test.At != "" && !strings.Contains(got[0].Attribute.String(), `"`+test.At+`"`) {
				t.Errorf("it is about %s", got[0].Attribute)
			}

			if test.warning && !strings.Contains(got[0].Summary, "metrics-server") {
				t.Errorf("other addons have the same summary: %s", got[0].Summary)
			}

			for _, step := range got[0].Attribute.Steps()[1:] {
				if _, isName := step.(tftypes.AttributeName); isName {
					t.Errorf("Terraform has no line for %s", got[0].Attribute)
				}
			}

			if strings.Contains(tftest.Show(got), "hunter22") || strings.Contains(tftest.Show(got), "the: secret") {
				t.Error("it shows a secret")
			}
		})
	}
}
