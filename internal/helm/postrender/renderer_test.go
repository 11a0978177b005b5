package postrender_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v3/pkg/postrender"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/helm/postrender"
)

var _ helm.PostRenderer = (*postrender.Renderer)(nil)

// chart is what charts render: objects of one name in several namespaces, the same object twice, names that the
// API server makes, lists, comments, custom kinds, and texts that read like something else.
const chart = `---
# Source: demo/templates/sa.yaml
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}   # a comment
---
# Source: demo/templates/config.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: web
  namespace: elsewhere
data: {a: "1e3", b: '0x10', c: "007", d: "on", e: "null", f: "1_000", g: "~", h: "2001-01-01", i: ""}
---
# Source: demo/templates/config.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: web
  labels: {app: web, tier: "1"}
  annotations: {owner: me}
data:
  a: "1e3"
  b: '0x10'
  c: "007"
  d: "on"
  e: "null"
  f: "1_000"
  g: "~"
  h: "2001-01-01"
  i: ""
  j: |
    #!/bin/sh
    echo "ü"

  k: "a\tb \n"
  "123": "456"
---
# Source: demo/templates/deployment.yaml
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 1
  paused: yes
  template:
    spec:
      containers:
      - {name: main, image: "nginx:1.0", args: [--a], env: [{name: A, value: "1"}], ports: [{containerPort: 80}]}
      - {name: side, image: side, resources: {limits: {cpu: 1, memory: 1Gi}, requests: {}}}
---
# Source: demo/templates/twice.yaml
{apiVersion: v1, kind: Service, metadata: {name: twice}, spec: {ports: [{port: 80}]}}
---
# Source: demo/templates/twice.yaml
{apiVersion: v1, kind: Service, metadata: {name: twice}, spec: {ports: [{port: 80}]}}
---
# Source: demo/templates/empty.yaml
---
# Source: demo/templates/job.yaml
{apiVersion: batch/v1, kind: Job, metadata: {generateName: web-}, spec: {backoffLimit: 3}}
---
# Source: demo/templates/list.yaml
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: first}, data: {a: "1"}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: second}, data: {a: "1"}}
---
# Source: demo/templates/custom.yaml
apiVersion: example.com/v1
kind: Widget
metadata: {name: "42"}
spec: {big: 9007199254740993, float: 1.5, exponent: 1e+21, list: [a, null, {b: []}], empty: {}, nothing: null}
`

func run(t *testing.T, rendered string, patches ...postrender.Patch) string {
	t.Helper()

	patched, err := postrender.New(patches).In("apps").Run(bytes.NewBufferString(rendered))
	if err != nil {
		t.Fatal(err)
	}

	return patched.String()
}

// changed are the changes that patches make, all objects of which are compared.
func changed(t *testing.T, rendered string, patches ...postrender.Patch) []string {
	t.Helper()

	var found []string

	for _, change := range diff.Compare(objects(t, rendered), objects(t, run(t, rendered, patches...)), nil) {
		found = append(found, change.String())
	}

	return found
}

func objects(t *testing.T, rendered string) []diff.Object {
	t.Helper()

	read, err := diff.Parse(rendered, "apps")
	if err != nil {
		t.Fatal(err)
	}

	return read
}

func on(kind, name string) *postrender.Target { return &postrender.Target{Kind: kind, Name: name} }

func TestRenderer_withoutPatches(t *testing.T) {
	t.Parallel()

	if got := run(t, chart); got != chart {
		t.Error(cmp.Diff(chart, got))
	}
}

func TestRenderer_patches(t *testing.T) {
	t.Parallel()

	const named = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"

	for name, test := range map[string]struct {
		patches []postrender.Patch
		want    []string
	}{
		"merge": {
			[]postrender.Patch{{Patch: named +
				"spec: {replicas: 2, template: {spec: {containers: [{name: main, image: other, args: [--b]}]}}}"}},
			[]string{`change Deployment apps/web:
  spec.replicas: 1 -> 2
  spec.template.spec.containers[main].args: ["--a"] -> ["--b"]
  spec.template.spec.containers[main].image: "nginx:1.0" -> "other"`},
		},
		"merge with its namespace": {
			[]postrender.Patch{{Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: elsewhere}\ndata: " +
				"{a: 'no'}"}},
			[]string{`change ConfigMap elsewhere/web: data.a: "1e3" -> "no"`},
		},
		"merge of several": {
			[]postrender.Patch{{Patch: named + "spec: {replicas: 2}\n" +
				"---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web}\nautomountServiceAccountToken: no\n"}},
			[]string{"change ServiceAccount apps/web: automountServiceAccountToken added: false",
				"change Deployment apps/web: spec.replicas: 1 -> 2"},
		},
		"merge on a target": {
			[]postrender.Patch{{Patch: "metadata: {labels: {team: a}}", Target: on("ConfigMap|Widget", "web|[0-9]+")}},
			[]string{
				`change ConfigMap apps/web: metadata.labels.team added: "a"`,
				`change ConfigMap elsewhere/web: metadata.labels added: {"team":"a"}`,
				`change Widget apps/42: metadata.labels added: {"team":"a"}`,
			},
		},
		"name and kind stay": {
			[]postrender.Patch{{Patch: "kind: Other\nmetadata: {name: other, namespace: other, labels: {team: a}}",
				Target: on("Widget", "")}},
			[]string{`change Widget apps/42: metadata.labels added: {"team":"a"}`},
		},
		"merge deletes": {
			[]postrender.Patch{
				{Patch: named + "$patch: delete\n"},
				{Patch: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\n$patch: delete\n"},
				{Patch: "data: {a: null}", Target: &postrender.Target{Namespace: "elsewhere"}},
			},
			[]string{"remove ConfigMap apps/first", `change ConfigMap elsewhere/web: data.a removed: "1e3"`,
				"remove Deployment apps/web"},
		},
		"operations": {
			[]postrender.Patch{{
				Patch: "- {op: replace, path: /spec/template/spec/containers/0/image, value: other}\n- {op: add, path: " +
					"/metadata/labels/a~1b, value: yes}\n",
				Target: on("Deployment", ""),
			}},
			[]string{`change Deployment apps/web:
  metadata.labels.a/b added: true
  spec.template.spec.containers[main].image: "nginx:1.0" -> "other"`},
		},
		"operations as JSON on several": {
			[]postrender.Patch{{
				Patch:  `[{"op": "add", "path": "/data/z", "value": "1"}]`,
				Target: &postrender.Target{Version: "v1", Kind: "ConfigMap", Namespace: "apps"},
			}},
			[]string{
				`change ConfigMap apps/first: data.z added: "1"`, `change ConfigMap apps/second: data.z added: "1"`,
				`change ConfigMap apps/web: data.z added: "1"`,
			},
		},
		"names that the API server makes": {
			[]postrender.Patch{{Patch: "spec: {backoffLimit: 5}", Target: on("Job", "")}},
			[]string{"change Job apps/web-*: spec.backoffLimit: 3 -> 5"},
		},
		"selectors": {
			[]postrender.Patch{{
				Patch:  `[{op: add, path: /data/z, value: "1"}]`,
				Target: &postrender.Target{Kind: "ConfigMap", LabelSelector: "app=web,tier in (1)", AnnotationSelector: "owner"},
			}},
			[]string{`change ConfigMap apps/web: data.z added: "1"`},
		},
		"one after the other": {
			[]postrender.Patch{
				{Patch: "metadata: {labels: {step: one}}", Target: on("Widget", "")},
				{
					Patch:  `[{op: test, path: /metadata/labels/step, value: one}, {op: replace, path: /spec/big, value: 1}]`,
					Target: &postrender.Target{LabelSelector: "step=one"},
				},
			},
			[]string{"change Widget apps/42:\n  metadata.labels added: {\"step\":\"one\"}\n  spec.big: 9007199254740993 -> 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(test.want, changed(t, chart, test.patches...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRenderer_keepsObjects patches all objects, and checks whether anything but the patched field is another one.
func TestRenderer_keepsObjects(t *testing.T) {
	t.Parallel()

	for name, patch := range map[string]string{
		"merge":      "metadata: {annotations: {patched: 'true'}}",
		"operations": "[{op: add, path: /metadata/annotations, value: {patched: 'true'}}]",
	} {
		before, after := objects(t, chart),
			objects(t, run(t, chart, postrender.Patch{Patch: patch, Target: &postrender.Target{}}))
		if len(before) != len(after) {
			t.Fatalf("%s: %d objects became %d", name, len(before), len(after))
		}

		for i := range before {
			metadata, _ := after[i].Content["metadata"].(map[string]any)
			annotations, _ := metadata["annotations"].(map[string]any)

			if annotations["patched"] != "true" {
				t.Errorf("%s: %s was not patched", name, after[i])
			}

			delete(annotations, "patched")

			was, _ := before[i].Content["metadata"].(map[string]any)
			metadata["annotations"], was["annotations"] = nil, nil

			if diff := cmp.Diff(before[i].Content, after[i].Content); diff != "" {
				t.Errorf("%s: %s\n%s", name, before[i], diff)
			}
		}
	}
}

// TestRenderer_keepsOtherDocuments is for what no patch is for: not a byte of it changes, and the order stays.
func TestRenderer_keepsOtherDocuments(t *testing.T) {
	t.Parallel()

	got := run(t, chart, postrender.Patch{Patch: "[{op: replace, path: /spec/replicas, value: 2}]",
		Target: on("Deployment", "")})

	before, after := strings.SplitAfter(chart, "---\n"), strings.SplitAfter(got, "---\n")
	if len(before) != len(after) {
		t.Fatal(cmp.Diff(chart, got))
	}

	for i := range before {
		if isDeployment := strings.Contains(before[i], "Deployment"); before[i] != after[i] != isDeployment {
			t.Error(cmp.Diff(before[i], after[i]))
		}
	}

	if i := slices.IndexFunc(after, func(text string) bool {
		return strings.HasPrefix(text, "# Source: demo/templates/deployment.yaml\napiVersion")
	}); i < 0 {
		t.Errorf("the source of what was patched is lost:\n%s", got)
	}
}

// TestRenderer_keepsAwkwardTexts is for texts that kustomize's YAML library reads as other types.
func TestRenderer_keepsAwkwardTexts(t *testing.T) {
	t.Parallel()

	data := map[string]any{}
	for _, text := range []string{
		"", " ", "1e3", "0x10", "007", "0o7", "1_000", "on", "yes", "y", "null", "~",
		".inf", "=", "<<", "-", "- a", "a: b", "a #b", "#", "%", "@", "`", "{{ x }}",
		"a\nb", "a\n", "a\n\n", "\na", "  a\n b\n", "\ta", "a\t", "a \n b", "ü", "😀", "\u2028", "\u0085",
		"<&>", "190:20:30", "*a", "!a", "---", "a\n---\nb", "a\r\nb", "\r", "\\",
		strings.Repeat("long ", 60), strings.Repeat("x", 300) + " y", " lead\ntrail ", "{}", "[]", "|", ">",
		"1.0", "+1", "0b1", "true", "1.e+3", "18446744073709551616",
	} {
		data["k"+string(rune('0'+len(data)))] = text
	}

	encoded, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a"}, "data": data})
	if err != nil {
		t.Fatal(err)
	}

	want := []string{`change ConfigMap apps/a: metadata.labels added: {"a":"b"}`}
	if diff := cmp.Diff(want, changed(t, string(encoded),
		postrender.Patch{Patch: "metadata: {labels: {a: b}}", Target: &postrender.Target{}})); diff != "" {
		t.Error(diff)
	}
}

func TestRenderer_patchesThatFail(t *testing.T) {
	t.Parallel()

	good := postrender.Patch{Patch: "metadata: {labels: {a: b}}", Target: &postrender.Target{}}

	for name, test := range map[string]struct {
		patch postrender.Patch
		want  string
	}{
		"no object": {postrender.Patch{Patch: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: other}"},
			"Deployment apps/other matches no object"},
		"names what is": {postrender.Patch{Patch: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: other}"},
			"rendered: Deployment web"},
		"other version": {postrender.Patch{Patch: "apiVersion: apps/v2\nkind: Deployment\nmetadata: {name: web}"},
			"matches no object"},
		"other namespace": {postrender.Patch{
			Patch: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: default}"}, "matches no object"},
		"no target": {postrender.Patch{Patch: "spec: {a: 1}", Target: on("StatefulSet", "")},
			"the target matches no object"},
		"part of the name": {postrender.Patch{Patch: "spec: {a: 1}", Target: on("Deployment", "we")},
			"the target matches no object"},
		"operation": {postrender.Patch{Patch: "[{op: remove, path: /spec/none}]", Target: on("Deployment", "")},
			"Deployment apps/web: "},
		"test": {postrender.Patch{Patch: "[{op: test, path: /spec/replicas, value: 9}]",
			Target: on("Deployment", "")}, "Deployment apps/web: "},
		"nothing left": {postrender.Patch{Patch: `[{op: replace, path: "", value: {}}]`, Target: on("Deployment", "")},
			"removes the whole object"},
		"cannot be a patch": {postrender.Patch{Patch: "text"}, "neither an object nor a list"},
	} {
		_, err := postrender.New([]postrender.Patch{good, test.patch}).In("apps").Run(bytes.NewBufferString(chart))

		var found *postrender.Error
		if !errors.As(err, &found) || found.Index != 1 || !strings.Contains(err.Error(), test.want) ||
			!strings.HasPrefix(err.Error(), "patch 2: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestRenderer_keepsEmptyLists is for charts that render a list around what there may be none of.
func TestRenderer_keepsEmptyLists(t *testing.T) {
	t.Parallel()

	for _, items := range []string{"items: null", "items: []", "items:"} {
		rendered := "kind: List\napiVersion: v1\n" + items + "\n"

		got := run(t, rendered+"---\n"+one,
			postrender.Patch{Patch: "metadata: {annotations: {patched: 'true'}}", Target: &postrender.Target{}})
		if !strings.HasPrefix(got, rendered+"---\n") || !strings.Contains(got, "patched") {
			t.Errorf("%q became %s", rendered, got)
		}
	}
}

const one = "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}\n"

// TestRenderer_atTheSameTime is for addons that are rendered side by side: kustomize has global state.
func TestRenderer_atTheSameTime(t *testing.T) {
	t.Parallel()

	var group sync.WaitGroup

	for range 8 {
		group.Go(func() {
			run(t, chart, postrender.Patch{Patch: "metadata: {annotations: {patched: 'true'}}", Target: &postrender.Target{}})
		})
	}

	group.Wait()
}
