package release_test

import (
	"errors"
	"strings"
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// breakable is a chart that has a while it is good, and when it is bad has b, and an object that the
// API refuses: nothing is deleted then.
func breakable(t *testing.T) *chart.Package {
	t.Helper()

	return packageOf(t, kubetest.Chart("breakable", "1.0.0", map[string]string{
		"templates/always.yaml": configMap("always", "{{ .Values.message }}"),
		"templates/good.yaml":   "{{ if not .Values.bad }}\n" + configMap("a", "") + "{{ end }}\n",
		"templates/bad.yaml": "{{ if .Values.bad }}\n" + configMap("b", "") +
			"---\napiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: 99999}]}\n{{ end }}\n",
	}))
}

// rewrite changes Helm's record of a revision.
func (p *place) rewrite(t *testing.T, name release.Name, revision int, change func(*helmrelease.Release)) {
	t.Helper()

	records := storage.Init(driver.NewSecrets(p.real.API().CoreV1().Secrets(p.namespace)))

	record, err := records.Get(name.Name, revision)
	if err != nil {
		t.Error(err)

		return
	}

	change(record)

	if err := records.Update(record); err != nil {
		t.Error(err)
	}
}

// failing runs an apply that fails, and checks its error.
func (p *place) failing(
	t *testing.T, spec release.Spec, chart *chart.Package, intent release.Intent, texts ...string,
) error {
	t.Helper()

	_, err := p.Apply(t.Context(), spec, chart, intent)

	var failed *release.FailedError
	if !errors.As(err, &failed) {
		t.Fatalf("what cannot be applied: %v", err)
	}

	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in:\n%s", text, err)
		}
	}

	return err
}
