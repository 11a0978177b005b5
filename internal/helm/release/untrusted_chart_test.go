package release_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// A schema reads no file of the planning machine and sends no request. It uses only its own content and the
// metaschemas of JSON Schema, which are part of the library.
func TestSchema_loadsNothing(t *testing.T) {
	t.Parallel()

	var asked atomic.Int32

	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(`true`))
	}))
	t.Cleanup(remote.Close)

	// A file that refuses every value shows whether it was read.
	file := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(file, []byte(`{"const": "confidential"}`), 0o600); err != nil {
		t.Fatal(err)
	}

	for name, test := range map[string]struct {
		schema, refused string
	}{
		"a file":           {`{"properties": {"a": {"$ref": "file://` + file + `"}}}`, file},
		"a relative file":  {`{"$ref": "other.schema.json"}`, "file:///other.schema.json"},
		"a URL":            {`{"properties": {"a": {"$ref": "` + remote.URL + `/a.json"}}}`, remote.URL},
		"below a base":     {`{"$id": "` + remote.URL + `/b.json", "properties": {"a": {"$ref": "c.json"}}}`, remote.URL},
		"a metaschema":     {`{"$schema": "` + remote.URL + `/meta.json"}`, remote.URL},
		"dynamic":          {`{"properties": {"a": {"$dynamicRef": "` + remote.URL + `/d.json"}}}`, remote.URL},
		"in itself":        {`{"$defs": {"text": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/text"}}}`, ""},
		"known metaschema": {`{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}`, ""},
		"schema of schemas": {
			`{"properties": {"b": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}}`, "",
		},
	} {
		for where, files := range map[string]map[string]string{
			"chart": {"values.schema.json": test.schema}, "subchart": {
				"charts/sub/Chart.yaml":         "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
				"charts/sub/values.schema.json": test.schema,
			},
		} {
			t.Run(name+" in a "+where, func(t *testing.T) {
				t.Parallel()

				chart := packageOf(t, kubetest.Chart("web", "1.0.0", files))
				spec := release.Spec{Name: release.Name{Namespace: "default", Name: "web"},
					Values: map[string]any{"a": "text", "sub": map[string]any{"a": "text"}}}

				_, err := release.RenderOffline(t.Context(), spec, chart, "v1.36.0")

				switch {
				case test.refused == "" && err != nil:
					t.Errorf("a schema of its own: %v", err)
				case test.refused != "" && (!errors.Is(err, release.ErrSchema) || !strings.Contains(err.Error(), test.refused)):
					t.Errorf("it is %v", err)
				}

				spec.Options.SkipSchemaValidation = true
				if _, err := release.RenderOffline(t.Context(), spec, chart, "v1.36.0"); err != nil {
					t.Errorf("without its schema: %v", err)
				}
			})
		}
	}

	t.Cleanup(func() {
		if n := asked.Load(); n > 0 {
			t.Errorf("%d requests", n)
		}
	})
}

// A user who may propose a chart and read a plan cannot read the Secrets of the cluster with it. That includes
// their content and their annotations, which hold what kubectl applied.
func TestRender_readsNoSecrets(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	proxy := newFaultProxy(t, p.real)
	through := &release.Cluster{API: proxy.client}

	if _, err := p.real.API().CoreV1().Secrets(p.namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "theirs", Annotations: map[string]string{"applied": "swordfish"}},
		StringData: map[string]string{"password": "swordfish"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	for name, test := range map[string]struct {
		lookup, found string
		withheld      bool
	}{
		"one":         {`lookup "v1" "Secret" "` + p.namespace + `" "theirs"`, "swordfish", true},
		"all":         {`lookup "v1" "Secret" "` + p.namespace + `" ""`, "swordfish", true},
		"everywhere":  {`lookup "v1" "Secret" "" ""`, "swordfish", true},
		"none of it":  {`lookup "v1" "Secret" "` + p.namespace + `" "missing"`, `"message":"{}"`, false},
		"a ConfigMap": {`lookup "v1" "ConfigMap" "` + p.namespace + `" "kube-root-ca.crt"`, "ca.crt", false},
	} {
		t.Run(name, func(t *testing.T) {
			chart := packageOf(t, kubetest.Chart("web", "1.0.0", map[string]string{
				"templates/a.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"+
					"data: {message: {{ (%s) | toJson | replace \"c3dvcmRmaXNo\" \"swordfish\" | quote }} }\n", test.lookup),
			}))

			rendering, err := through.Render(t.Context(), p.spec(nil), chart, release.Observation{})

			switch text := toJSON(t, rendering.Objects) + fmt.Sprint(err); {
			case strings.Contains(text, "swordfish"):
				t.Errorf("the plan shows it: %s", text)
			case test.withheld && !errors.Is(err, release.ErrWithheld):
				t.Errorf("it is %v", err)
			case !test.withheld && (err != nil || !strings.Contains(text, test.found)):
				t.Errorf("nothing that has to be withheld: %s", text)
			}
		})
	}

	// An apply does what the chart says.
	chart := packageOf(t, kubetest.Chart("web", "1.0.0", map[string]string{
		"templates/a.yaml": configMap("a", `{{ (lookup "v1" "Secret" "`+p.namespace+`" "theirs").data.password }}`),
	}))
	p.apply(t, p.spec(nil), chart, release.Intent{Create: true})
	same(t, "objects", p.configMaps(t), []string{"a=c3dvcmRmaXNo"})
}
