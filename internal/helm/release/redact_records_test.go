package release_test

import (
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// What the API server quotes of an object that it refuses is Helm's description of the failed revision, which
// helm history shows to whoever may run it.
func TestRecords_failureHoldsNoSecrets(t *testing.T) {
	t.Parallel()

	// As JSON in the JSON of an object it is escaped twice.
	const password = "correct\"horse\\battery"

	p := newPlace(t)
	chart := packageOf(t, kubetest.Chart("web", "1.0.0", map[string]string{
		"templates/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n" +
			"data:\n  plain: {{ .Values.password | quote }}\n  derived: {{ .Values.password | upper | quote }}\n" +
			"  {{ if .Values.bad }}bad: true{{ end }}\n",
		"templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: secret}\n" +
			"stringData:\n  plain: {{ .Values.password | quote }}\n  derived: {{ .Values.password | upper | quote }}\n" +
			"  {{ if .Values.worse }}bad: true{{ end }}\n",
	}))
	spec, helm := p.spec(map[string]any{"password": password}), kubetest.Helm(t, p.real)
	spec.Secrets = values.Secrets{password}
	p.apply(t, spec, chart, release.Intent{Create: true})

	for revision, bad := range map[string]string{"2": "bad", "3": "worse"} {
		spec.Values = map[string]any{"password": password, bad: true}
		err := p.failing(t, spec, chart, release.Intent{}, "cannot unmarshal")

		history, stderr, helmErr := helm("history", "web", "-n", p.namespace, "-o", "json")
		if helmErr != nil || !strings.Contains(history, "cannot unmarshal") {
			t.Fatalf("helm history of revision %s: %v\n%s%s", revision, helmErr, history, stderr)
		}

		for name, text := range map[string]string{
			"helm history": history, "the error": err.Error(), "the log": strings.Join(p.told, "\n"),
		} {
			for _, part := range []string{"horse", "battery"} {
				if strings.Contains(text, part) {
					t.Errorf("%s: %s shows the password:\n%s", bad, name, text)
				}
			}
		}

		if strings.Contains(strings.ToLower(history), "horse") {
			t.Errorf("%s: helm history shows what was made of the password:\n%s", bad, history)
		}
	}
}
