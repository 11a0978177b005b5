package diff_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
)

const rendered = `---
# Source: demo/templates/empty.yaml
# nothing but a comment
---
# Source: demo/templates/deployment.yaml
apiVersion: apps/v1
kind: Deployment
metadata:
  name: demo
  annotations: {helm.sh/resource-policy: " Keep "}
spec:
  replicas: 3
  template: {spec: {containers: [{name: main, args: ["--- no separator", '007']}]}}
---
# Source: demo/templates/elsewhere.yaml
apiVersion: v1
kind: ConfigMap
metadata: {name: demo, namespace: elsewhere}
data:
  script: |
    a
     ---
    b
---
# Source: demo/templates/list.yaml
apiVersion: v1
kind: List
items:
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: demo, namespace: by-mistake}}
- apiVersion: v1
  kind: ConfigMapList
  items:
  - {metadata: {name: inner}}
--- # with a comment
# Source: demo/templates/two.yaml

---
apiVersion: batch/v1
kind: Job
metadata: {generateName: demo-}
---
apiVersion: example.com/v1
kind: AllowList
metadata: {name: no-list}
spec: {items: [1]}
`

func parse(t *testing.T, text string) []diff.Object {
	t.Helper()

	objects, err := diff.Parse(text, "apps")
	if err != nil {
		t.Fatal(err)
	}

	return objects
}

func TestParse_objects(t *testing.T) {
	t.Parallel()

	objects := parse(t, rendered)

	var got []string
	for _, object := range objects {
		got = append(got, object.APIVersion+" "+object.String())
	}

	want := []string{
		"apps/v1 Deployment apps/demo", "v1 ConfigMap elsewhere/demo", "rbac.authorization.k8s.io/v1 ClusterRole demo",
		"v1 ConfigMap apps/inner", "batch/v1 Job apps/demo-*", "example.com/v1 AllowList apps/no-list",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}

	if !objects[0].Kept || objects[1].Kept {
		t.Errorf("kept: %t, %t", objects[0].Kept, objects[1].Kept)
	}

	spec := map[string]any{
		"replicas": int64(3), "template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "main", "args": []any{"--- no separator", "007"}},
		}}},
	}
	if diff := cmp.Diff(spec, objects[0].Content["spec"]); diff != "" {
		t.Error(diff)
	}

	if diff := cmp.Diff(map[string]any{"script": "a\n ---\nb\n"}, objects[1].Content["data"]); diff != "" {
		t.Error(diff)
	}
}

func TestParse_nothing(t *testing.T) {
	t.Parallel()

	for _, text := range []string{"", "\n", "---\n", "# nothing", "---\n---\n# Source: a\n---\nnull\n---\n{}\n"} {
		if objects := parse(t, text); len(objects) > 0 {
			t.Errorf("%q has %v", text, objects)
		}
	}
}

func TestParse_errors(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"damaged": {"---\n# Source: demo/templates/a.yaml\na: 1\nb: c: d\n",
			[]string{"demo/templates/a.yaml", "line 2"}},
		"no source": {"a: 1\n---\n---\n- b\n", []string{"document 1", "kind"}},
		"list":      {"# Source: demo/templates/a.yaml\n- b\n", []string{"demo/templates/a.yaml", "list"}},
		"no kind":   {"# Source: demo/templates/a.yaml\napiVersion: v1\n", []string{"demo/templates/a.yaml", "kind"}},
		"item": {"# Source: demo/templates/a.yaml\napiVersion: v1\nkind: List\nitems: [a]\n",
			[]string{"demo/templates/a.yaml", "item 0 of List"}},
		"item of kind": {"# Source: demo/templates/a.yaml\napiVersion: v1\nkind: List\nitems: [{metadata: {}}]\n",
			[]string{"item 0 of List", "kind"}},
		"separator": {"a: 1\n---x\n", []string{"document 1"}},
	} {
		_, err := diff.Parse(test.text, "apps")
		if err == nil {
			t.Errorf("%s: no error", name)

			continue
		}

		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %s", name, err, want)
			}
		}
	}
}

// TestKey_withoutVersion is for charts that move an object to a newer version of its API.
func TestKey_withoutVersion(t *testing.T) {
	t.Parallel()

	objects := parse(t, `
{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: a}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, namespace: apps}}
---
{apiVersion: other/v1, kind: PodDisruptionBudget, metadata: {name: a}}
---
{apiVersion: v1, kind: Service, metadata: {name: a}}
`)

	if objects[0].Key() != objects[1].Key() || objects[0].Key() == objects[2].Key() {
		t.Errorf("keys %v", objects)
	}

	if want := (diff.Key{Kind: "Service", Namespace: "apps", Name: "a"}); objects[3].Key() != want {
		t.Errorf("key %v", objects[3].Key())
	}
}

// TestParse_emptyLists is for charts that render a list around what there may be none of.
func TestParse_emptyLists(t *testing.T) {
	t.Parallel()

	for _, text := range []string{
		"{apiVersion: v1, kind: List, items: null}", "{apiVersion: v1, kind: List, items: []}",
		"apiVersion: v1\nkind: List\nitems:\n",
		"{apiVersion: v1, kind: ConfigMapList, items: null}",
		"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: null}]}",
	} {
		if objects := parse(t, text); len(objects) > 0 {
			t.Errorf("%s has the objects %v", text, objects)
		}
	}
}
