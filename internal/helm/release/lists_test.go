package release_test

import (
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// A template that renders a list around nothing has no objects, which could be missing.
func TestDrift_noneOfEmptyList(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	chart := packageOf(t, kubetest.Chart("lists", "1.0.0", map[string]string{
		"templates/a.yaml":    configMap("a", ""),
		"templates/list.yaml": "apiVersion: v1\nkind: List\nitems:\n{{- range .Values.none }}\n- {}\n{{- end }}\n",
	}))
	spec := p.spec(nil)
	p.apply(t, spec, chart, release.Intent{Create: true})

	deployed, _ := p.observed(t, spec.Name).Deployed()

	lines, err := p.Drift(t.Context(), deployed, release.DriftOptions{Release: spec.Name})
	if err != nil || len(lines) > 0 || len(deployed.Objects) != 1 {
		t.Errorf("drift %v, %v of %v", lines, err, deployed.Objects)
	}
}
