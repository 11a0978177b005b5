package release_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// A failed template in a chart that asks for what the cluster lacks may fail for that reason. Another release may
// create it, so a plan names it. If a chart asks for nothing missing, the failure is certain.
func TestRender_wantsWhatIsMissing(t *testing.T) {
	t.Parallel()

	const (
		// Cilium 1.18, templates/validate.yaml, as of the service monitors.
		monitor = `{{- if and .Values.monitor (not (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) }}
{{ fail "Service Monitor requires monitoring.coreos.com/v1 CRDs" }}{{ end }}`
		wrong = `{{ required "a value for name is needed" .Values.name }}`
	)

	p := newPlace(t)

	for name, test := range map[string]struct {
		template string
		values   string
		missing  string
	}{
		"kinds":    {template: monitor, values: "monitor: true", missing: "monitoring.coreos.com/v1"},
		"one kind": {template: `{{ if not (.Capabilities.APIVersions.Has "a.example/v1/Thing") }}{{ fail "no" }}{{ end }}`, missing: "a.example/v1"},
		"kinds of a value": {template: `{{ if not (.Capabilities.APIVersions.Has .Values.api) }}{{ fail "no" }}{{ end }}`,
			values: "api: a.example/v1beta1", missing: "a.example/v1beta1"},
		"object": {template: `{{ if not (lookup "v1" "ConfigMap" "default" "settings") }}{{ fail "no" }}{{ end }}`,
			missing: "configmaps default/settings"},
		"what is in an object": {template: `a: {{ (lookup "v1" "ConfigMap" "default" "settings").data.key | required "no key" }}`,
			missing: "configmaps default/settings"},
		"Secret": {template: `{{ if not (lookup "v1" "Secret" "default" "settings") }}{{ fail "no" }}{{ end }}`,
			missing: "secrets default/settings"},
		"object of the cluster": {template: `{{ if not (lookup "storage.k8s.io/v1" "StorageClass" "" "fast") }}{{ fail "no" }}{{ end }}`,
			missing: "storageclasses fast"},
		"object of an unknown kind": {template: `{{ if not (lookup "a.example/v1" "Thing" "default" "one") }}{{ fail "no" }}{{ end }}`,
			missing: "a.example/v1"},
		"one of all": {template: `{{ if not (lookup "networking.k8s.io/v1" "IngressClass" "" "").items }}{{ fail "no" }}{{ end }}`,
			missing: "ingressclasses"},
		"perhaps kinds": {template: monitor + wrong, missing: "monitoring.coreos.com/v1"},
		"perhaps an object": {template: `{{ $found := lookup "v1" "ConfigMap" "default" "settings" }}` + wrong,
			missing: "configmaps default/settings"},

		"nothing":               {template: wrong},
		"nothing of a kind":     {template: "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\n" + wrong},
		"nothing of Kubernetes": {template: `{{ if not (.Capabilities.APIVersions.Has "extensions/v1beta1") }}{{ fail "no" }}{{ end }}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			chart := packageOf(t, kubetest.Chart("web", "1.0.0", map[string]string{
				"values.yaml": test.values + "\n", "templates/a.yaml": configMap("a", ""),
				"charts/child/Chart.yaml":       "apiVersion: v2\nname: child\nversion: 0.0.0\n",
				"charts/child/values.yaml":      test.values + "\n",
				"charts/child/templates/b.yaml": test.template + "\n",
			}))

			_, err := p.Render(t.Context(), p.spec(nil), chart, release.Observation{})
			if !errors.Is(err, release.ErrTemplate) {
				t.Fatal(err)
			}

			if got := errors.Is(err, release.ErrMissing); got != (test.missing != "") {
				t.Errorf("missing is %v: %v", got, err)
			}

			if !strings.Contains(err.Error(), test.missing) {
				t.Errorf("it does not name %s: %v", test.missing, err)
			}
		})
	}
}
