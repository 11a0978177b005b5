package release_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/objects"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// kindOf names a kind after a place, because definitions are of the whole cluster.
func (p *place) kindOf(prefix string) string {
	return prefix + strings.ReplaceAll(p.namespace, "test-", "")
}

// definitionOf is the definition of a kind with fields of its spec.
func definitionOf(kind string, fields ...string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.defined.example}
spec:
  group: defined.example
  scope: Namespaced
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]ss, singular: %[1]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%[3]s}}}}}
`, strings.ToLower(kind), kind, strings.Join(fields, ", "))
}

const (
	sizeField = "size: {type: integer}"
	tagsField = "tags: {type: array, items: {type: string}}"
)

// definition of a kind as the cluster has it, nil when it has none.
func (p *place) definition(t *testing.T, kind string) map[string]any {
	t.Helper()

	live, err := p.API.GetObject(t.Context(), objects.Reference{
		APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition",
		Name: strings.ToLower(kind) + "s.defined.example",
	})
	if err != nil {
		t.Fatal(err)
	}

	return live
}

// conditional is a chart with a dependency that brings the definition of a kind when it is turned on.
func conditional(t *testing.T, version, kind string, on bool) *chart.Package {
	t.Helper()

	return packageOf(t, kubetest.Chart("stack", version, map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: stack\nversion: " + version +
			"\ndependencies: [{name: crds, version: 0.0.0, condition: crds.enabled}]\n",
		"values.yaml":             fmt.Sprintf("crds: {enabled: %t}\n", on),
		"charts/crds/Chart.yaml":  "apiVersion: v2\nname: crds\nversion: 0.0.0\n",
		"charts/crds/crds/a.yaml": definitionOf(kind, sizeField),
		"templates/a.yaml":        configMap("data", version),
	}))
}

// As in Helm, a disabled dependency adds nothing.
func TestDefinitions_disabledDependencies(t *testing.T) {
	t.Parallel()

	off := map[string]any{"crds": map[string]any{"enabled": false}}

	for name, included := range map[string]bool{"beside": false, "included": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p := newPlace(t)
			kind := p.kindOf("Ogre")
			spec := p.spec(off)
			spec.Options.IncludeCRDs, spec.Options.UpgradeCRDs = included, true

			rendering, err := release.RenderOffline(t.Context(), spec, conditional(t, "1.0.0", kind, true), "v1.36.0")
			if err != nil {
				t.Fatal(err)
			}

			same(t, "rendered", namesOf(rendering), []string{"ConfigMap data"})

			p.apply(t, spec, conditional(t, "1.0.0", kind, true), release.Intent{Create: true})

			// Values and defaults of the revision before count where they are asked for.
			spec.Values, spec.Options.Reuse = nil, release.ReuseUserValues
			p.apply(t, spec, conditional(t, "2.0.0", kind, true), release.Intent{})

			spec.Options.Reuse = release.ReuseValues
			p.apply(t, spec, conditional(t, "3.0.0", kind, true), release.Intent{})

			if p.definition(t, kind) != nil {
				t.Fatal("a dependency that is off brought its definitions")
			}

			spec.Options.Reuse = release.ReuseNothing
			p.apply(t, spec, conditional(t, "4.0.0", kind, true), release.Intent{})

			if p.definition(t, kind) == nil {
				t.Error("a dependency that is on brought no definitions")
			}
		})
	}
}

func TestDefinitions_reusedDefaults(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	kind, spec := p.kindOf("Ogre"), p.spec(nil)
	spec.Options.UpgradeCRDs = true
	p.apply(t, spec, conditional(t, "1.0.0", kind, false), release.Intent{Create: true})

	spec.Options.Reuse = release.ReuseValues
	p.apply(t, spec, conditional(t, "2.0.0", kind, true), release.Intent{})

	if p.definition(t, kind) != nil {
		t.Error("the defaults of the new chart count")
	}
}

// The owner of definitions decides their content.
func TestDefinitions_ofOtherReleasesStay(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	kind := p.kindOf("Troll")
	owner, other := p.spec(nil), p.spec(nil)
	owner.Name.Name, other.Name.Name = "owner", "other"
	other.Options.UpgradeCRDs = true

	less := packageOf(t, kubetest.Chart("other", "1.0.0", map[string]string{
		"crds/a.yaml": definitionOf(kind, tagsField), "templates/a.yaml": configMap("data", ""),
	}))
	p.apply(t, owner, packageOf(t, kubetest.Chart("owner", "1.0.0", map[string]string{
		"templates/a.yaml": definitionOf(kind, sizeField, tagsField),
	})), release.Intent{Create: true})

	rendering, err := p.Render(t.Context(), other, less, release.Observation{})
	if err != nil {
		t.Fatal(err)
	}

	changes, err := p.Changes(t.Context(), other, rendering, release.Observation{})
	if err != nil || len(changes) != 1 {
		t.Errorf("planned: %v %v", changes, err)
	}

	outcome := p.apply(t, other, less, release.Intent{Create: true})

	if text := toJSON(t, p.definition(t, kind)["spec"]); !strings.Contains(text, `"size"`) {
		t.Errorf("the definition of another release is now %s", text)
	}

	want := "kept CustomResourceDefinition " + strings.ToLower(kind) + "s.defined.example: it belongs to release " +
		p.namespace + "/owner"
	if !slices.Contains(outcome.Done, want) {
		t.Errorf("done: %q", outcome.Done)
	}

	other.Options.TakeOwnership = true
	p.apply(t, other, less, release.Intent{Repair: true})

	if text := toJSON(t, p.definition(t, kind)["spec"]); strings.Contains(text, `"size"`) {
		t.Errorf("it was to be taken, and is still %s", text)
	}
}

// What an apply does before Helm begins is no conflict of its preview.
func TestChanges_includedDefinitions(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	kind := p.kindOf("Imp")
	spec, other := p.spec(nil), p.spec(nil)
	other.Name.Name = "other"

	chartOf := func(name string) *chart.Package {
		return packageOf(t, kubetest.Chart(name, "1.0.0", map[string]string{
			"crds/a.yaml": definitionOf(kind, sizeField), "templates/a.yaml": configMap(name, ""),
			"templates/b.yaml": "apiVersion: defined.example/v1\nkind: " + kind + "\nmetadata: {name: " + name +
				"}\nspec: {size: 1}\n",
		}))
	}

	// They exist and have no owner, for the installation of one release and the upgrade of the other.
	p.apply(t, spec, chartOf("web"), release.Intent{Create: true})

	spec.Options.IncludeCRDs, other.Options.IncludeCRDs = true, true

	for _, of := range []release.Spec{spec, other} {
		rendering, err := p.Render(t.Context(), of, chartOf(of.Name.Name), p.observed(t, of.Name))
		if err != nil {
			t.Fatal(err)
		}

		same(t, "objects", namesOf(rendering), []string{
			"ConfigMap " + of.Name.Name, "CustomResourceDefinition " + strings.ToLower(kind) + "s.defined.example",
			kind + " " + of.Name.Name,
		})
	}

	p.apply(t, spec, chartOf("web"), release.Intent{})

	// Then a release owns them.
	_, planned := p.Render(t.Context(), other, chartOf("other"), release.Observation{})
	_, applied := p.Apply(t.Context(), other, chartOf("other"), release.Intent{Create: true})

	for what, err := range map[string]error{"plan": planned, "apply": applied} {
		if !errors.Is(err, release.ErrOwned) || !strings.Contains(err.Error(), "belongs to release "+p.namespace+"/web") {
			t.Errorf("%s: %v", what, err)
		}
	}

	other.Options.TakeOwnership = true
	if _, err := p.Render(t.Context(), other, chartOf("other"), release.Observation{}); err != nil {
		t.Error(err)
	}

	if err := p.Remove(t.Context(), spec.Name, release.RemoveOptions{Wait: true, Timeout: testTimeout}); err != nil {
		t.Fatal(err)
	}

	if p.definition(t, kind) == nil {
		t.Error("the definition went with the release")
	}
}

// The crds folder is for definitions; Helm takes whatever is in it.
func TestDefinitions_otherObjects(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	kind, spec := p.kindOf("Hobbit"), p.spec(nil)
	chart := packageOf(t, kubetest.Chart("web", "1.0.0", map[string]string{
		"crds/a.yaml":      definitionOf(kind, sizeField) + "---\n# nothing\n---\n" + configMap("beside", "1"),
		"templates/a.yaml": configMap("data", ""),
	}))

	p.apply(t, spec, chart, release.Intent{Create: true})
	same(t, "objects", p.configMaps(t), []string{"beside=1", "data="})

	spec.Options.UpgradeCRDs = true
	p.apply(t, spec, chart, release.Intent{Repair: true})

	live, err := p.real.API().CoreV1().ConfigMaps(p.namespace).Get(t.Context(), "beside", metav1.GetOptions{})
	if err != nil || live.Labels["app.kubernetes.io/managed-by"] != "" {
		t.Errorf("it is part of the release: %v %v", live.Labels, err)
	}
}

// A kind that no chart defines is found before anything happens, hooks included.
func TestApply_missingKindsAreFoundFirst(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	hook := strings.Replace(configMap("hook", ""), "{name: hook}",
		`{name: hook, annotations: {helm.sh/hook: "pre-install,pre-upgrade"}}`, 1)
	fine := packageOf(t, kubetest.Chart("web", "1.0.0", map[string]string{"templates/a.yaml": configMap("data", "")}))
	broken := packageOf(t, kubetest.Chart("web", "2.0.0", map[string]string{
		"templates/a.yaml": configMap("data", ""), "templates/hook.yaml": hook,
		"templates/b.yaml": "apiVersion: defined.example/v1\nkind: " + p.kindOf("Nobody") + "\nmetadata: {name: web}\n",
	}))

	for _, name := range []string{"install", "upgrade"} {
		spec := p.spec(nil)
		if name == "upgrade" {
			p.apply(t, spec, fine, release.Intent{Create: true})
		}

		before := p.configMaps(t)

		_, err := p.Apply(t.Context(), spec, broken, release.Intent{Create: name == "install"})
		if err == nil || !strings.Contains(err.Error(), p.kindOf("Nobody")) {
			t.Errorf("%s: %v", name, err)
		}

		same(t, "objects after the "+name, p.configMaps(t), before)
	}
}
