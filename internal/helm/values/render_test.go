package values_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/testenv"
)

const (
	chartFile    = "apiVersion: v2\nname: echo\nversion: 1.0.0\n"
	chartDefault = "kept: 1\ndropped: {a: 1, b: 2}\nreplaced: [1, 2, 3]\n"
	echoTemplate = "apiVersion: v1\nkind: Echo\nmetadata: {name: echo}\nspec:\n  {{- toYaml .Values | nindent 2 }}\n"
)

// echoChart shows the values that its templates see.
func echoChart(t *testing.T, defaults, template string) *helmchart.Chart {
	t.Helper()

	chart, err := loader.LoadFiles([]*loader.BufferedFile{
		{Name: "Chart.yaml", Data: []byte(chartFile)},
		{Name: "values.yaml", Data: []byte(defaults)},
		{Name: "templates/echo.yaml", Data: []byte(template)},
	})
	if err != nil {
		t.Fatal(err)
	}

	return chart
}

// render is Helm's result for a template and values.
func render(t *testing.T, chart *helmchart.Chart, given map[string]any) string {
	t.Helper()

	values, err := chartutil.ToRenderValues(chart, given, chartutil.ReleaseOptions{Name: "echo", Namespace: "default"}, nil)
	if err != nil {
		t.Fatal(err)
	}

	files, err := engine.Render(chart, values)
	if err != nil {
		t.Fatal(err)
	}

	return files["echo/templates/echo.yaml"]
}

// echoed are the values that a template showed.
func echoed(t *testing.T, rendered string) map[string]any {
	t.Helper()

	var object struct{ Spec map[string]any }
	if err := yaml.Unmarshal([]byte(rendered), &object); err != nil {
		t.Fatalf("%v in\n%s", err, rendered)
	}

	return object.Spec
}

// helmTemplate is the real helm's result for the same chart, with documents in files.
func helmTemplate(t *testing.T, defaults, template string, documents []string, flags ...string) string {
	t.Helper()

	binary := filepath.Join(os.Getenv("TALOSOP_TEST_ASSETS"), "helm")
	if _, err := os.Stat(binary); err != nil || os.Getenv("TALOSOP_TEST_ASSETS") == "" {
		if testenv.AssetsRequired() {
			t.Fatal("no helm in TALOSOP_TEST_ASSETS")
		}

		t.Skip("no helm in TALOSOP_TEST_ASSETS")
	}

	folder := t.TempDir()
	files := map[string]string{"Chart.yaml": chartFile, "values.yaml": defaults, "templates/echo.yaml": template}
	arguments := append([]string{"template", "echo", folder}, flags...)

	for i, document := range documents {
		name := "given-" + string(rune('a'+i)) + ".yaml"
		files[name] = document
		arguments = append(arguments, "-f", filepath.Join(folder, name))
	}

	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	output, err := exec.CommandContext(t.Context(), binary, arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, output)
	}

	return string(output)
}
