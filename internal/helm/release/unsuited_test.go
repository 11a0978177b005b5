package release_test

import (
	"slices"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// A deployed chart is unsuited for the versions of Kubernetes that it does not allow, and for no others.
func TestUnsuited_deployedCharts(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), packageOf(t, kubetest.Chart("old", "1.0.0", map[string]string{
		"Chart.yaml":         "apiVersion: v2\nname: old\nversion: 1.0.0\nkubeVersion: '< 1.37.0-0'\n",
		"templates/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: old}\n",
	}))
	spec := p.spec(nil)
	p.apply(t, spec, chart, release.Intent{Create: true})

	for version, want := range map[string][]release.Unsuited{
		"v1.36.3": nil,
		"v1.37.0": {{Name: spec.Name, Chart: "old", Version: "1.0.0", Allowed: "< 1.37.0-0"}},
	} {
		found, err := p.Unsuited(t.Context(), version)
		if err != nil {
			t.Fatal(err)
		}

		// Other tests have releases, too.
		found = slices.DeleteFunc(found, func(u release.Unsuited) bool { return u.Namespace != p.namespace })
		if !slices.Equal(found, want) {
			t.Errorf("for %s: %+v, want %+v", version, found, want)
		}
	}
}
