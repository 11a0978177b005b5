package release_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/postrender"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// observed is the release as it is now.
func (p *place) observed(t *testing.T, name release.Name) release.Observation {
	t.Helper()

	have, err := p.Observe(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}

	return have
}

func namesOf(r release.Rendering) []string {
	var names []string
	for _, o := range r.Objects {
		names = append(names, o.Kind+" "+o.Name)
	}

	slices.Sort(names)

	return names
}

func TestRender_changesNothing(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	proxy := newFaultProxy(t, p.real)
	through := &release.Cluster{API: proxy.client}
	spec, kind := p.spec(nil), "Nut"+strings.ReplaceAll(p.namespace, "test-", "")
	first, next := packageOf(t, gears(kind, "1.0.0", "stays", "goes")),
		packageOf(t, gears(kind, "2.0.0", "stays", "comes"))

	// A kind that its own crds folder brings is not there yet.
	rendering, err := through.Render(t.Context(), spec, first, release.Observation{})
	if err != nil {
		t.Fatal(err)
	}

	same(t, "objects", namesOf(rendering), []string{"ConfigMap goes", "ConfigMap stays", kind + " gear"})

	if len(rendering.Hooks) != 4 {
		t.Errorf("hooks: %v", rendering.Hooks)
	}

	p.apply(t, spec, first, release.Intent{Create: true})

	rendering, err = through.Render(t.Context(), spec, next, p.observed(t, spec.Name))
	if err != nil {
		t.Fatal(err)
	}

	same(t, "objects", namesOf(rendering), []string{"ConfigMap comes", "ConfigMap stays", kind + " gear"})

	for _, call := range proxy.calls {
		if !strings.HasPrefix(call, "GET ") {
			t.Errorf("a dry run that asks for %s", call)
		}
	}

	if len(proxy.calls) == 0 {
		t.Error("nothing was asked")
	}
}

// Helm renders no upgrade of a release that is pending: the plan after a kill.
func TestRender_pendingRevision(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	chart := packageOf(t, kubetest.Chart("web", "1.0.0", map[string]string{
		"templates/a.yaml": configMap("a", "{{ .Release.IsUpgrade }} {{ .Release.IsInstall }}"),
	}))

	for text, want := range map[string]string{
		"":                              "false true",
		"pending-install:aaaa":          "false true",
		"deployed:aaaa pending-upgrade": "true false",
		"!-uninstalling<deployed":       "true false",
		"!-uninstalling<failed":         "false true",
	} {
		rendering, err := p.Render(t.Context(), p.spec(nil), chart, history(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)

			continue
		}

		if data, _ := rendering.Objects[0].Content["data"].(map[string]any); data["message"] != want {
			t.Errorf("%s: %v, want %s", text, data, want)
		}
	}
}

// refusals are charts that cannot be installed, each with the reason and a text.
func refusals(t *testing.T) map[string]struct {
	chart  *chart.Package
	values map[string]any
	patch  string
	reason error
	text   string
} {
	t.Helper()

	simple := packageOf(t, kubetest.Simple.Package("1.0.0"))

	return map[string]struct {
		chart  *chart.Package
		values map[string]any
		patch  string
		reason error
		text   string
	}{
		"template": {chart: packageOf(t, kubetest.Broken.Package("1.0.0")), reason: release.ErrTemplate,
			text: "configmap.yaml"},
		"yaml": {
			chart:  packageOf(t, kubetest.Chart("web", "1.0.0", map[string]string{"templates/a.yaml": "kind: [\n"})),
			reason: release.ErrTemplate, text: "templates/a.yaml",
		},
		"definition": {
			chart:  packageOf(t, kubetest.Chart("web", "1.0.0", map[string]string{"crds/a.yaml": "kind: [\n"})),
			reason: release.ErrChart, text: "web/crds/a.yaml: ",
		},
		"kubernetes": {chart: packageOf(t, kubetest.NeedsKubernetes.Package("1.0.0")), reason: release.ErrKubernetes,
			text: "the cluster runs v1."},
		"schema": {
			chart: packageOf(t, kubetest.WithSchema.Package("1.0.0")), values: map[string]any{"replicas": int64(0)},
			reason: release.ErrValues, text: "the values do not match the schema of the chart: at '/replicas': ",
		},
		"patch": {chart: simple, patch: "kind: ConfigMap\nmetadata: {name: nothing-of-it}\napiVersion: v1\n",
			reason: release.ErrPatch, text: "nothing-of-it"},
	}
}

func TestRender_refusedCharts(t *testing.T) {
	t.Parallel()

	p := newPlace(t)

	for name, tc := range refusals(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			spec := p.spec(tc.values)
			spec.Name.Name = name

			if tc.patch != "" {
				spec.Patches = []postrender.Patch{{Patch: tc.patch}}
			}

			_, rendered := p.Render(t.Context(), spec, tc.chart, release.Observation{})
			_, offline := release.RenderOffline(t.Context(), spec, tc.chart, "v1.36.0")
			_, applied := p.Apply(t.Context(), spec, tc.chart, release.Intent{Create: true})

			for what, err := range map[string]error{"plan": rendered, "offline": offline, "apply": applied} {
				if !errors.Is(err, tc.reason) || !strings.Contains(err.Error(), tc.text) {
					t.Errorf("%s: %v; want %v with %q", what, err, tc.reason, tc.text)
				}
			}

			same(t, "statuses", p.statuses(t, spec.Name), "")
		})
	}
}

func TestRender_schemaErrorIsOneLine(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"web:\n- at '/a': got 0\n": "at '/a': got 0",
		"web:\n- at '/a': got 0\n- at '/b': anyOf failed\n  - at '/b': got 1\n\n": "at '/a': got 0; at '/b': anyOf failed; " +
			"at '/b': got 1",
		"web:\n- at '/a': got 0\ndb:\ninvalid type for values: expected object (map), got string\n": "at '/a': got 0; " +
			"dependency db: invalid type for values: expected object (map), got string",
		"web:\nunexpected EOF": "unexpected EOF",
	} {
		same(t, text, release.SchemaText(text, "web"), want)
	}
}

func TestRender_errorsHoldNoSecrets(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	chart := packageOf(t, kubetest.Chart("web", "1.0.0",
		map[string]string{"templates/a.yaml": `{{ fail (printf "bad password %s" .Values.password) }}`}))
	spec := p.spec(map[string]any{"password": "hunter2hunter2"})
	spec.Secrets = values.Secrets{"hunter2hunter2"}

	_, rendered := p.Render(t.Context(), spec, chart, release.Observation{})
	_, offline := release.RenderOffline(t.Context(), spec, chart, "1.36.0")
	_, applied := p.Apply(t.Context(), spec, chart, release.Intent{Create: true})

	for what, err := range map[string]error{"plan": rendered, "offline": offline, "apply": applied} {
		if !errors.Is(err, release.ErrTemplate) || !strings.Contains(err.Error(), "bad password") ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", what, err)
		}
	}

	if reported := strings.Join(p.reported, "\n"); strings.Contains(reported, "hunter2") {
		t.Errorf("got: %s", reported)
	}
}

func TestRenderOffline_withoutCluster(t *testing.T) {
	t.Parallel()

	chart := packageOf(t, kubetest.Chart("web", "1.0.0", map[string]string{
		"templates/a.yaml": configMap("a",
			"{{ .Capabilities.KubeVersion.Version }} {{ .Release.Namespace }}/{{ .Release.Name }} {{ .Values.n }}"),
		"templates/b.yaml": strings.Replace(configMap("b", "hook"), "{name: b}",
			`{name: b, annotations: {helm.sh/hook: pre-install}}`, 1),
	}))
	spec := release.Spec{Name: release.Name{Namespace: "prod", Name: "web"}, Values: map[string]any{"n": int64(1000000)}}

	rendering, err := release.RenderOffline(t.Context(), spec, chart, "v1.35.2")
	if err != nil {
		t.Fatal(err)
	}

	data, _ := rendering.Objects[0].Content["data"].(map[string]any)
	same(t, "rendered", data["message"], "v1.35.2 prod/web 1000000")

	if len(rendering.Hooks) != 1 || rendering.Hooks[0].Name != "b" {
		t.Errorf("hooks: %v", rendering.Hooks)
	}

	if _, err := release.RenderOffline(t.Context(), spec, chart, "latest"); err == nil {
		t.Error("no version at all is taken for one")
	}
}

// Without a version of Kubernetes nothing is rendered, and errors of every version are still reported.
func TestCheck_withoutRendering(t *testing.T) {
	t.Parallel()

	certain := map[string]bool{"definition": true, "schema": true}

	for name, tc := range refusals(t) {
		spec := release.Spec{Name: release.Name{Namespace: "prod", Name: name}, Values: tc.values}

		if err := release.Check(spec, tc.chart, ""); errors.Is(err, tc.reason) != certain[name] ||
			(err != nil) != certain[name] {
			t.Errorf("%s: %v", name, err)
		}

		known := certain[name] || name == "kubernetes"
		if err := release.Check(spec, tc.chart, "v1.36.0"); errors.Is(err, tc.reason) != known {
			t.Errorf("%s, with a version: %v", name, err)
		}

		// The values of the revision before are below them.
		spec.Options.Reuse = release.ReuseValues
		if err := release.Check(spec, tc.chart, ""); errors.Is(err, release.ErrValues) {
			t.Errorf("%s, with values of the revision before: %v", name, err)
		}
	}
}

// The schema of a dependency that the values leave out says nothing of them.
func TestCheck_dependencyLeftOut(t *testing.T) {
	t.Parallel()

	chart := packageOf(t, kubetest.Chart("web", "1.0.0", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n" +
			"dependencies: [{name: sub, version: 1.0.0, condition: sub.enabled}]\n",
		"charts/sub/Chart.yaml":         "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
		"charts/sub/values.schema.json": `{"required": ["a"]}`,
	}))

	for enabled, want := range map[bool]error{true: release.ErrValues, false: nil} {
		spec := release.Spec{Name: release.Name{Namespace: "prod", Name: "web"},
			Values: map[string]any{"sub": map[string]any{"enabled": enabled}}}

		if err := release.Check(spec, chart, ""); !errors.Is(err, want) {
			t.Errorf("enabled %v: %v, want %v", enabled, err, want)
		}
	}
}
