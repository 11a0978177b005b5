package release_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// oneMap is a chart of ConfigMaps that all releases of a namespace share.
func oneMap(t *testing.T, version string, names ...string) *chart.Package {
	t.Helper()

	files := map[string]string{}
	for _, name := range names {
		files["templates/"+name+".yaml"] = configMap(name, "{{ .Release.Name }} {{ .Values.message }}")
	}

	return packageOf(t, kubetest.Chart("maps", version, files))
}

func TestOwnership_twoReleases(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	chart := oneMap(t, "1.0.0", "shared")
	first, second := p.spec(nil), p.spec(nil)
	first.Name.Name, second.Name.Name = "first", "second"
	p.apply(t, first, chart, release.Intent{Create: true})

	for what, run := range map[string]func() error{
		"plan":  func() error { _, err := p.Render(t.Context(), second, chart, release.Observation{}); return err },
		"apply": func() error { _, err := p.Apply(t.Context(), second, chart, release.Intent{Create: true}); return err },
	} {
		err := run()
		if !errors.Is(err, release.ErrOwned) {
			t.Fatalf("%s: %v", what, err)
		}

		for _, text := range []string{"ConfigMap " + p.namespace + "/shared belongs to release " + p.namespace + "/first",
			"take_ownership"} {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q is not in: %v", what, text, err)
			}
		}
	}

	same(t, "objects", p.configMaps(t), []string{"shared=first "})
	same(t, "statuses of the second", p.statuses(t, second.Name), "")

	// It moves to the second release with the option, and the first one leaves it alone from then on.
	second.Options.TakeOwnership = true
	p.apply(t, second, chart, release.Intent{Create: true})
	same(t, "objects", p.configMaps(t), []string{"shared=second "})

	deployed, _ := p.observed(t, first.Name).Deployed()
	if lines, err := p.Drift(t.Context(), deployed, release.DriftOptions{Release: first.Name}); err != nil ||
		len(lines) > 0 {
		t.Errorf("drift of what went over: %v %v", lines, err)
	}

	first.Values = map[string]any{"message": "mine"}
	if _, err := p.Apply(t.Context(), first, chart, release.Intent{}); !errors.Is(err, release.ErrOwned) {
		t.Errorf("an upgrade takes back what went over: %v", err)
	}

	outcome := p.apply(t, first, oneMap(t, "2.0.0", "other"), release.Intent{})
	if !strings.Contains(strings.Join(outcome.Done, "\n"), "left ConfigMap "+p.namespace+"/shared") {
		t.Errorf("done: %v", outcome.Done)
	}

	same(t, "objects", p.configMaps(t), []string{"other=first mine", "shared=second "})

	if err := p.Remove(t.Context(), first.Name, release.RemoveOptions{Wait: true, Timeout: testTimeout}); err != nil {
		t.Fatal(err)
	}

	same(t, "objects", p.configMaps(t), []string{"shared=second "})
}

func TestRemove_keepsObjectsOfNewOwner(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	chart := oneMap(t, "1.0.0", "shared")
	first, second := p.spec(nil), p.spec(nil)
	first.Name.Name, second.Name.Name, second.Options.TakeOwnership = "first", "second", true
	p.apply(t, first, chart, release.Intent{Create: true})
	p.apply(t, second, chart, release.Intent{Create: true})

	if err := p.Remove(t.Context(), first.Name, release.RemoveOptions{Wait: true, Timeout: testTimeout}); err != nil {
		t.Fatal(err)
	}

	same(t, "objects", p.configMaps(t), []string{"shared=second "})
	same(t, "statuses", p.statuses(t, first.Name), "")
}

func TestOwnership_objectsWithoutOwner(t *testing.T) {
	t.Parallel()

	p := newPlace(t)

	if _, err := p.real.API().CoreV1().Namespaces().Get(t.Context(), p.namespace, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}

	if _, err := p.API.ApplyObject(t.Context(), map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "shared", "namespace": p.namespace},
		"data": map[string]any{"message": "by hand"},
	}); err != nil {
		t.Fatal(err)
	}

	_, err := p.Apply(t.Context(), p.spec(nil), oneMap(t, "1.0.0", "shared"), release.Intent{Create: true})
	if !errors.Is(err, release.ErrOwned) || !strings.Contains(err.Error(), "belongs to no release") {
		t.Errorf("%v", err)
	}

	same(t, "objects", p.configMaps(t), []string{"shared=by hand"})
}

// The plan of an upgrade reports what the apply would refuse: objects that another client made, and objects that
// moved to another release.
func TestOwnership_plansOfUpgrades(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	p.apply(t, p.spec(nil), oneMap(t, "1.0.0", "mine"), release.Intent{Create: true})

	if _, err := p.API.ApplyObject(t.Context(), map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "shared", "namespace": p.namespace},
	}); err != nil {
		t.Fatal(err)
	}

	plan := func(spec release.Spec, names ...string) error {
		_, err := p.Render(t.Context(), spec, oneMap(t, "2.0.0", names...), p.observed(t, spec.Name))

		return err
	}

	if err := plan(p.spec(nil), "mine", "new"); err != nil {
		t.Errorf("an upgrade that brings what is not there: %v", err)
	}

	if err := plan(p.spec(nil), "mine", "shared"); !errors.Is(err, release.ErrOwned) ||
		!strings.Contains(err.Error(), "shared belongs to no release") || strings.Contains(err.Error(), "mine") {
		t.Errorf("an upgrade that brings what another client made: %v", err)
	}

	taking := p.spec(nil)
	taking.Options.TakeOwnership = true

	if err := plan(taking, "mine", "shared"); err != nil {
		t.Errorf("with take_ownership: %v", err)
	}

	other := p.spec(nil)
	other.Name.Name, other.Options.TakeOwnership = "other", true
	p.apply(t, other, oneMap(t, "1.0.0", "mine"), release.Intent{Create: true})

	if err := plan(p.spec(nil), "mine"); !errors.Is(err, release.ErrOwned) ||
		!strings.Contains(err.Error(), "mine belongs to release "+other.Name.String()) {
		t.Errorf("an upgrade of what went over: %v", err)
	}
}

func TestDefinitions_lifecycle(t *testing.T) {
	t.Parallel()

	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}

	for _, tc := range []struct {
		name    string
		options func(o *release.Options)
		// version of the definition after an installation of 1.0.0 and an upgrade to 2.0.0, empty for none.
		installed, upgraded string
		refused             bool
	}{
		{name: "once", options: func(*release.Options) {}, installed: "1.0.0", upgraded: "1.0.0"},
		{name: "upgraded", options: func(o *release.Options) { o.UpgradeCRDs = true }, installed: "1.0.0", upgraded: "2.0.0"},
		{name: "included", options: func(o *release.Options) { o.IncludeCRDs = true }, installed: "1.0.0", upgraded: "2.0.0"},
		{name: "skipped", options: func(o *release.Options) { o.SkipCRDs = true }, refused: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()

			tr := newTrial(t, tc.name)
			spec := tr.spec()
			spec.Options.UpgradeCRDs = false
			tc.options(&spec.Options)

			version := func() string {
				found, err := tr.real.Dynamic().Resource(crds).Get(t.Context(), strings.ToLower(tr.kind)+"s.killed.example",
					metav1.GetOptions{})
				if err != nil {
					return ""
				}

				text := toJSON(t, found.Object["spec"])
				_, after, _ := strings.Cut(text, `"description":"`)
				version, _, _ := strings.Cut(after, `"`)

				return version
			}

			_, err := tr.Apply(t.Context(), spec, tr.first, release.Intent{Create: true})
			if (err != nil) != tc.refused {
				t.Fatal(err)
			}

			same(t, "installed", version(), tc.installed)

			if tc.refused {
				return
			}

			tr.apply(t, spec, tr.next, release.Intent{})
			same(t, "upgraded", version(), tc.upgraded)

			deployed, _ := tr.observed(t, spec.Name).Deployed()
			if lines, err := tr.Drift(t.Context(), deployed, release.DriftOptions{Release: spec.Name}); err != nil ||
				len(lines) > 0 {
				t.Errorf("drift: %v %v", lines, err)
			}

			// Never deleted: not by turning them out of the release either, nor with it.
			spec.Options.IncludeCRDs = false
			spec.Values = map[string]any{"other": true}
			tr.apply(t, spec, tr.next, release.Intent{})

			if err := tr.Remove(t.Context(), spec.Name, release.RemoveOptions{Wait: true, Timeout: testTimeout}); err != nil {
				t.Fatal(err)
			}

			same(t, "after the removal", version(), tc.upgraded)
		})
	}
}
