package release_test

import (
	"context"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// When the API server refuses an object, its quote becomes Helm's description of the failed revision. Every user
// of helm history can read it.
func TestRecords_failureHoldsNoSecrets(t *testing.T) {
	t.Parallel()

	// As JSON in the JSON of an object it is escaped twice.
	const password = "correct\"horse\\battery"

	p := newPlace(t)
	// A kind whose fields only the server knows, with a transformed secret in its metadata.
	chart := packageOf(t, kubetest.Chart("web", "1.0.0", map[string]string{
		"templates/service.yaml": "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\n" +
			"metadata:\n  name: v1." + p.namespace + ".example\n  annotations:\n" +
			"    plain: {{ .Values.password | quote }}\n    derived: {{ .Values.password | upper | quote }}\n" +
			"spec: {group: " + p.namespace + ".example, version: v1, groupPriorityMinimum: 1000, " +
			"versionPriority: {{ if .Values.bad }}true{{ else }}1{{ end }}}\n",
	}))
	spec, helm := p.spec(map[string]any{"password": password}), kubetest.Helm(t, p.real)
	spec.Secrets = values.Secrets{password}
	p.apply(t, spec, chart, release.Intent{Create: true})

	spec.Values = map[string]any{"password": password, "bad": true}

	t.Cleanup(func() {
		if err := p.Remove(context.WithoutCancel(t.Context()), spec.Name, release.RemoveOptions{}); err != nil {
			t.Error(err)
		}
	})

	err := p.failing(t, spec, chart, release.Intent{}, "cannot unmarshal")

	history, stderr, helmErr := helm("history", "web", "-n", p.namespace, "-o", "json")
	if helmErr != nil || !strings.Contains(history, "cannot unmarshal") {
		t.Fatalf("helm history: %v\n%s%s", helmErr, history, stderr)
	}

	for name, text := range map[string]string{
		"helm history": history, "the error": err.Error(), "the log": strings.Join(p.reported, "\n"),
	} {
		for _, part := range []string{"horse", "battery"} {
			if strings.Contains(text, part) {
				t.Errorf("%s shows the password:\n%s", name, text)
			}
		}
	}

	if strings.Contains(strings.ToLower(history), "horse") {
		t.Errorf("helm history shows what was made of the password:\n%s", history)
	}
}
