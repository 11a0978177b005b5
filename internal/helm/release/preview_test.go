package release_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// forecast is a plan's forecast of an apply, one text for each object, without the namespace.
func (p *place) forecast(t *testing.T, spec release.Spec, chart *chart.Package, have release.Observation) []string {
	t.Helper()

	rendering, err := p.Render(t.Context(), spec, chart, have)
	if err != nil {
		t.Fatal(err)
	}

	changes, err := p.Changes(t.Context(), spec, rendering, have)
	if err != nil {
		t.Fatal(err)
	}

	texts := []string{}
	for _, change := range changes {
		texts = append(texts, strings.ReplaceAll(change.String(), p.namespace+"/", ""))
	}

	return texts
}

// What a first installation that failed, or was killed, has brought is not added once more.
func TestChanges_afterFailure(t *testing.T) {
	t.Parallel()

	chart := packageOf(t, kubetest.Simple.Package("1.0.0"))
	missing := map[string]any{"message": "b", "podAnnotations": map[string]any{kubetest.MissingImageAnnotation: "true"}}
	back := []string{
		`change ConfigMap web: data.message: "b" -> "a"`,
		`change Deployment web: spec.template.metadata.annotations removed: {"` + kubetest.MissingImageAnnotation +
			`":"true"}`,
	}

	for name, before := range map[string]bool{"install": false, "upgrade": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p := newPlace(t)
			good, bad := p.spec(map[string]any{"message": "a"}), p.spec(missing)
			bad.Options.Timeout = time.Second

			if before {
				p.apply(t, good, chart, release.Intent{Create: true})
				same(t, "nothing to do", p.forecast(t, good, chart, p.observed(t, good.Name)), []string{})
			}

			if _, err := p.Apply(t.Context(), bad, chart, release.Intent{Create: !before}); err == nil {
				t.Fatal("a pod without an image is fine")
			}

			have := p.observed(t, good.Name)
			same(t, "after the failure", p.forecast(t, good, chart, have), back)

			have.History[len(have.History)-1].Status = release.PendingUpgrade
			same(t, "after a kill", p.forecast(t, good, chart, have), back)

			p.apply(t, good, chart, release.Intent{})
			same(t, "at last", p.forecast(t, good, chart, p.observed(t, good.Name)), []string{})
		})
	}
}

// Leftovers of a failed revision are removed, and secrets are not shown.
func TestChanges_hideSecrets(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	chart := func(version, extra string) *chart.Package {
		return packageOf(t, kubetest.Chart("web", version, map[string]string{
			"templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: {{ .Values.text }}}\n",
			"templates/map.yaml":    configMap("m", "{{ .Values.text }}"),
			"templates/extra.yaml":  configMap(extra, "c"),
			// A Service without ports is refused.
			"templates/service.yaml": "{{ if .Values.bad }}\napiVersion: v1\nkind: Service\nmetadata: {name: z}\nspec: {type: " +
				"NodePort}\n{{ end }}\n",
		}))
	}

	spec := p.spec(map[string]any{"text": "hushed-one", "bad": true})
	if _, err := p.Apply(t.Context(), spec, chart("1.0.0", "goes"), release.Intent{Create: true}); err == nil {
		t.Fatal("a Service without ports is fine")
	}

	spec.Values = map[string]any{"text": "hushed-two"}
	spec.Secrets = values.Secrets{"hushed-one", "hushed-two"}

	same(t, "changes", p.forecast(t, spec, chart("1.0.1", "comes"), p.observed(t, spec.Name)), []string{
		"change Secret s: data.a: (sensitive) -> (sensitive)",
		"add ConfigMap comes",
		"remove ConfigMap goes",
		`change ConfigMap m: data.message: "(sensitive)" -> "(sensitive)"`,
	})
}

// The definitions of the crds folder are a part of what an apply changes, and of no release.
func TestChanges_definitions(t *testing.T) {
	t.Parallel()

	tr := newTrial(t, "preview")
	spec := tr.spec()
	spec.Options.UpgradeCRDs = false
	definition := "CustomResourceDefinition " + strings.ToLower(tr.kind) + "s.killed.example"

	of := func(spec release.Spec, chart *chart.Package, have release.Observation) (found []string) {
		for _, text := range tr.forecast(t, spec, chart, have) {
			if strings.Contains(text, "CustomResourceDefinition") {
				found = append(found, text)
			}
		}

		return found
	}

	var none []string

	same(t, "first", of(spec, tr.first, release.Observation{}), []string{"add " + definition})

	without := spec
	without.Options.SkipCRDs = true
	same(t, "skipped", of(without, tr.first, release.Observation{}), none)

	tr.apply(t, spec, tr.first, release.Intent{Create: true})

	have := tr.observed(t, spec.Name)
	same(t, "an upgrade", of(spec, tr.next, have), none)
	same(t, "another installation", of(spec, tr.next, release.Observation{}), none)

	spec.Options.UpgradeCRDs = true
	same(t, "the same", of(spec, tr.first, have), none)

	description := `: spec.versions[v1].schema.openAPIV3Schema.description: "1.0.0" -> "2.0.0"`
	same(t, "upgraded", of(spec, tr.next, have), []string{"change " + definition + description})
}

func TestChanges_noAnswer(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	proxy := newFaultProxy(t, p.real)
	proxy.fault = func(string, int) fault { return cut }
	p.API = proxy.client

	objects, err := diff.Parse(configMap("a", "b"), p.namespace)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := p.Changes(t.Context(), p.spec(nil), release.Rendering{Objects: objects},
		history("failed:aaaa")); !errors.Is(err, api.ErrNoAnswer) {
		t.Errorf("%v", err)
	}
}
