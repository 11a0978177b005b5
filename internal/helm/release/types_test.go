package release_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// typed is a chart whose objects have fields of values.
func typed(t *testing.T) *chart.Package {
	t.Helper()

	return packageOf(t, kubetest.Chart("web", "1.0.0", map[string]string{
		"values.yaml": "replicas: 1\nport: 80\nenv: a\nmemory: 1Gi\nargs: [a]\nlabels: {a: b}\nhook: 1\ndata: YQ==\n",
		"templates/a.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ toJson .Values.replicas }}
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers:
      - {name: a, image: a}
      - name: b
        image: b
        args: {{ toJson .Values.args }}
        ports: [{containerPort: {{ toJson .Values.port }}}]
        env: [{name: A, value: b}, {name: B, value: {{ toJson .Values.env }}}]
        resources: {limits: {memory: {{ toJson .Values.memory }}}}
`,
		"templates/b.yaml": "apiVersion: web.example/v1\nkind: Web\nmetadata: {name: web, labels: {{ toJson .Values.labels }}}\n" +
			"spec: {anything: [goes, 1]}\n",
		"templates/c.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-install}}\n" +
			"spec: {backoffLimit: {{ toJson .Values.hook }}, template: {spec: {restartPolicy: Never, containers: []}}}\n",
		"templates/d.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: web}\ndata: {a: {{ toJson .Values.data }}}\n",
	}))
}

// What Kubernetes could not read is found without it, by its field and its types.
func TestRender_wrongTypes(t *testing.T) {
	t.Parallel()

	const at = "Deployment shop/web: spec.template.spec.containers[1]."

	for name, test := range map[string]struct {
		values map[string]any
		says   string
	}{
		"right":   {},
		"integer": {map[string]any{"replicas": "two"}, "Deployment shop/web: spec.replicas has type string, but Kubernetes expects an integer"},
		"fraction": {map[string]any{"replicas": 1.5},
			"Deployment shop/web: spec.replicas has type number 1.5, but Kubernetes expects an integer"},
		"string":  {map[string]any{"env": 80}, at + "env[1].value has type number, but Kubernetes expects a string"},
		"list":    {map[string]any{"args": "a"}, at + "args has type string, but Kubernetes expects a list"},
		"element": {map[string]any{"args": []any{"a", true}}, at + "args[1] has type boolean, but Kubernetes expects a string"},
		"mapping": {map[string]any{"port": map[string]any{}},
			at + "ports[0].containerPort has type mapping, but Kubernetes expects an integer"},
		"quantity": {map[string]any{"memory": "much"}, at + "resources.limits.memory: quantities must match"},
		"two":      {map[string]any{"replicas": "two", "env": 80}, " has type "},
		"metadata of others": {map[string]any{"labels": map[string]any{"a": 1}},
			"Web shop/web: metadata.labels.a has type number, but Kubernetes expects a string"},
		"hook": {map[string]any{"hook": "none"}, "Job shop/hook: spec.backoffLimit has type string"},
		"data": {map[string]any{"data": "no base64, hunter22"}, "Secret shop/web: data.a: illegal base64 data"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			spec := release.Spec{Name: release.Name{Namespace: "shop", Name: "web"}, Values: test.values}
			_, err := release.RenderOffline(t.Context(), spec, typed(t), "v1.36.0")

			switch {
			case test.says == "" && err != nil:
				t.Error(err)
			case test.says != "" && (!errors.Is(err, release.ErrType) || !strings.Contains(err.Error(), test.says)):
				t.Errorf("%v, want %s", err, test.says)
			case err != nil && (strings.ContainsAny(err.Error(), "{\n") || strings.Contains(err.Error(), "hunter22")):
				t.Errorf("it quotes what there is: %v", err)
			}
		})
	}
}

// A plan refuses exactly the types that the server refuses: the test asks the server for each.
func TestMistyped_asTheServer(t *testing.T) {
	t.Parallel()

	p := newPlace(t)

	for i, fields := range []string{
		"data: {a: b}", "data: {a: 1}", "data: {a: null}", "data: null", "data: []", "immutable: true", "immutable: yes",
		`immutable: "true"`, "binaryData: {a: YQ==}", "binaryData: {a: '?'}", "unknown: [1]", "Data: {a: 1}",
	} {
		p.serverAgrees(t, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d}\n%s\n", i, fields))
	}

	for i, ports := range []string{
		"{port: 80}", "{port: 80.0}", "{port: 80.5}", `{port: "80"}`, "{port: 80, targetPort: web}", "{port: 80, targetPort: 8080}",
		"{port: 80, targetPort: 1.5}", "{port: 80, targetPort: true}", "{port: 99999999999}",
	} {
		p.serverAgrees(t, fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: a%d}\nspec: {ports: [%s]}\n", i, ports))
	}

	for i, storage := range []string{"1Gi", "1073741824", "1.5", "1e3", "much", "true", "[]", "1GB"} {
		p.serverAgrees(t, fmt.Sprintf("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a%d, annotations: {}}\n"+
			"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: %s}}}\n", i, storage))
	}
}

// serverAgrees checks that an object is found to be mistyped when the server calls it a bad request.
func (p *place) serverAgrees(t *testing.T, manifest string) {
	t.Helper()

	objects, err := diff.Parse(manifest, p.namespace)
	if err != nil {
		t.Fatal(err)
	}

	found := release.Mistyped(objects)

	metadata, _ := objects[0].Content["metadata"].(map[string]any)
	metadata["namespace"] = p.namespace

	_, refusal := p.API.CreateObject(t.Context(), objects[0].Content)
	if refused := apierrors.IsBadRequest(refusal); refused != (found != nil) {
		t.Errorf("%s\nfound %v, and the server says %v", manifest, found, refusal)
	}
}
