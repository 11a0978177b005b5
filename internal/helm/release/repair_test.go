package release_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// custom is a chart with a custom resource and a ConfigMap, one field of each named by key. With the option to
// fail, it fails after both exist.
func custom(t *testing.T, kind string) *chart.Package {
	t.Helper()

	return packageOf(t, kubetest.Chart("custom", "1.0.0", map[string]string{
		"crds/a.yaml": definitionOf(kind, sizeField, tagsField, "mode: {type: string, default: a}",
			"extra: {type: object, additionalProperties: {type: string}}"),
		"templates/a.yaml": "apiVersion: defined.example/v1\nkind: " + kind + "\nmetadata: {name: thing}\n" +
			"spec: {size: {{ .Values.size }}, tags: [], unknown: {a: b}, extra: { {{ .Values.key }}: x }}\n",
		"templates/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: data}\ndata: { {{ .Values.key }}: x }\n",
		"templates/c.yaml": "{{ if .Values.bad }}\napiVersion: batch/v1\nkind: Job\n" +
			"metadata: {name: fails, annotations: {helm.sh/hook: \"post-install,post-upgrade\"}}\n" +
			"spec: {backoffLimit: 0, template: {metadata: {annotations: {" + kubetest.FailAnnotation +
			": \"exit code 1: no\"}}, " +
			"spec: {restartPolicy: Never, containers: [{name: main, image: a}]}}}\n{{ end }}\n",
	}))
}

// things are the custom resources of a kind in the place.
func (p *place) things(kind string) dynamic.ResourceInterface {
	return p.real.Dynamic().Resource(schema.GroupVersionResource{
		Group: "defined.example", Version: "v1", Resource: strings.ToLower(kind) + "s",
	}).Namespace(p.namespace)
}

// spec of the custom resource as it is.
func (p *place) thing(t *testing.T, kind string) map[string]any {
	t.Helper()

	live, err := p.things(kind).Get(t.Context(), "thing", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	spec, _ := live.Object["spec"].(map[string]any)

	return spec
}

// asWanted fails the test unless both objects are what the values say, and nothing of a revision is missing.
func (p *place) asWanted(t *testing.T, kind string, spec release.Spec) {
	t.Helper()

	key, _ := spec.Values["key"].(string)
	same(t, "ConfigMap", p.configMaps(t), []string{"data= " + key})

	live := p.thing(t, kind)
	extra, _ := live["extra"].(map[string]any)

	if live["size"] != spec.Values["size"] || !slices.Equal(slices.Collect(maps.Keys(extra)), []string{key}) {
		t.Errorf("the custom resource is %v", live)
	}

	deployed, _ := p.observed(t, spec.Name).Deployed()
	if lines, err := p.Drift(t.Context(), deployed,
		release.DriftOptions{Release: spec.Name, Depth: release.DepthObjects}); err != nil || len(lines) > 0 {
		t.Errorf("drift: %v %v", lines, err)
	}
}

// Custom resources get back what was taken from them, the empty ones too.
func TestApply_customResourcesGetFieldsBack(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	kind := p.kindOf("Gadget")
	chart, spec := custom(t, kind), p.spec(map[string]any{"size": int64(1), "key": "right"})
	p.apply(t, spec, chart, release.Intent{Create: true})
	p.asWanted(t, kind, spec)

	if _, err := p.things(kind).Patch(t.Context(), "thing", types.MergePatchType,
		[]byte(`{"spec":{"size":null,"extra":null,"tags":null,"mode":"b"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}

	deployed, _ := p.observed(t, spec.Name).Deployed()

	lines, err := p.Drift(t.Context(), deployed, release.DriftOptions{Release: spec.Name, Depth: release.DepthObjects})
	if err != nil || len(lines) == 0 {
		t.Fatalf("drift: %v %v", lines, err)
	}

	p.apply(t, spec, chart, release.Intent{Repair: true})
	p.asWanted(t, kind, spec)
	same(t, "mode", p.thing(t, kind)["mode"], "b")
}

// Fields that only a failed revision gave its objects go with the next one: one that corrects it, and one
// that takes it back.
func TestApply_objectsAfterFailedRevisions(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct{ before, after map[string]any }{
		"first install corrected": {after: map[string]any{"size": int64(3), "key": "right"}},
		"upgrade corrected": {before: map[string]any{"size": int64(1), "key": "first"},
			after: map[string]any{"size": int64(3), "key": "right"}},
		"upgrade taken back": {before: map[string]any{"size": int64(1), "key": "right"},
			after: map[string]any{"size": int64(1), "key": "right"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p := newPlace(t)
			kind := p.kindOf("Elf")
			chart, spec := custom(t, kind), p.spec(tc.before)

			if tc.before != nil {
				p.apply(t, spec, chart, release.Intent{Create: true})
			}

			spec.Values = map[string]any{"size": int64(2), "key": "wrong", "bad": true}
			if _, err := p.Apply(t.Context(), spec, chart, release.Intent{Create: tc.before == nil}); err == nil {
				t.Fatal("a hook that fails is not reported")
			}

			same(t, "what it left", p.configMaps(t), []string{"data= wrong"})

			spec.Values = tc.after
			p.apply(t, spec, chart, release.Intent{})
			p.asWanted(t, kind, spec)
		})
	}
}

// An adopted object gets the chart's fields, and keeps its other fields.
func TestAdopt_customResources(t *testing.T) {
	t.Parallel()

	for name, owner := range map[string]string{"no owner's": "", "another release's": "other"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p := newPlace(t)
			kind := p.kindOf("Dwarf")
			chart, spec := custom(t, kind), p.spec(map[string]any{"size": int64(1), "key": "right"})
			spec.Options.TakeOwnership = true

			if owner == "" {
				p.adoptable(t, kind)
			} else {
				other := p.spec(map[string]any{"size": int64(9), "key": "right"})
				other.Name.Name = owner
				p.apply(t, other, chart, release.Intent{Create: true})
			}

			p.apply(t, spec, chart, release.Intent{Create: true})
			p.asWanted(t, kind, spec)

			if mode := p.thing(t, kind)["mode"]; owner == "" && mode != "b" {
				t.Errorf("mode is %v", mode)
			}
		})
	}
}

// adoptable makes the objects of the custom chart by hand, with other content.
func (p *place) adoptable(t *testing.T, kind string) {
	t.Helper()

	// The definition is there from an installation before.
	spec := p.spec(map[string]any{"size": int64(1), "key": "right"})
	spec.Name.Name = "before"
	p.apply(t, spec, custom(t, kind), release.Intent{Create: true})

	if err := p.Remove(t.Context(), spec.Name,
		release.RemoveOptions{Wait: true, Timeout: spec.Options.Timeout}); err != nil {
		t.Fatal(err)
	}

	if _, err := p.things(kind).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "defined.example/v1", "kind": kind, "metadata": map[string]any{"name": "thing"},
		"spec": map[string]any{"size": int64(9), "mode": "b"},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	if _, err := p.API.ApplyObject(t.Context(), map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "data", "namespace": p.namespace},
		"data": map[string]any{"right": "other"},
	}); err != nil {
		t.Fatal(err)
	}
}

// What only a failed revision gave an object goes with the next one, after a first install as after an
// upgrade; what others gave it stays.
func TestApply_fieldsOfFailedRevisionsGo(t *testing.T) {
	t.Parallel()

	chart := packageOf(t, kubetest.Simple.Package("1.0.0"))
	missing := map[string]any{"message": "a",
		"podAnnotations": map[string]any{kubetest.MissingImageAnnotation: "true", "example.org/more": "b"}}

	for name, before := range map[string]bool{"install": false, "upgrade": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p := newPlace(t)
			good, bad := p.spec(map[string]any{"message": "a"}), p.spec(missing)
			bad.Options.Timeout = time.Second

			if before {
				p.apply(t, good, chart, release.Intent{Create: true})
			}

			if _, err := p.Apply(t.Context(), bad, chart, release.Intent{Create: !before}); err == nil {
				t.Fatal("a pod without an image is fine")
			}

			deployments := p.real.API().AppsV1().Deployments(p.namespace)

			patch := []byte(`{"metadata": {"annotations": {"example.org/theirs": "stays"}}}`)
			if _, err := deployments.Patch(t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}

			good.Values["replicas"] = 2
			p.apply(t, good, chart, release.Intent{})

			live, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}

			if left := live.Spec.Template.Annotations; len(left) > 0 {
				t.Errorf("the pods still have %v", left)
			}

			if live.Annotations["example.org/theirs"] != "stays" || len(live.Spec.Template.Spec.Containers) != 1 ||
				*live.Spec.Replicas != 2 {
				t.Errorf("the Deployment is %+v", live)
			}
		})
	}
}
