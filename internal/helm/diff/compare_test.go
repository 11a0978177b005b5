package diff_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
)

const before = `
{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {helm.sh/chart: demo-1.0.0, app.kubernetes.io/version: "1.0", app: web}
spec:
  replicas: 1
  template:
    metadata:
      annotations: {checksum/config: 0123}
      labels: {helm.sh/chart: demo-1.0.0}
    spec:
      containers:
      - name: main
        image: "nginx:1.0"
        env: [{name: A, value: a}, {name: B, value: b}]
        args: [--one, --two, --a-rather-long-argument=with-a-long-value-to-be-cut, --three]
      - {name: side, image: side}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: web, labels: {helm.sh/chart: demo-1.0.0}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: web}, data: {a: aHVudGVyMg==, b: eA==, same: eA==}, type: Opaque}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, annotations: {helm.sh/resource-policy: keep}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: gone}}
---
{apiVersion: v1, kind: Service, metadata: {name: same}, spec: {ports: [{name: a, port: 1}, {name: b, port: 2}]}}
`

const after = `
{apiVersion: v1, kind: Service, metadata: {name: same}, spec: {ports: [{name: b, port: 2}, {name: a, port: 1}]}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: web, labels: {helm.sh/chart: demo-2.0.0}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: web}, data: {a: b3RoZXI=, same: eA==}, stringData: {c: hunter3}, type: kubernetes.io/tls}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {helm.sh/chart: demo-2.0.0, app.kubernetes.io/version: "2.0", app: site}
spec:
  replicas: 2
  template:
    metadata:
      annotations: {checksum/config: 4567}
      labels: {helm.sh/chart: demo-2.0.0}
    spec:
      containers:
      - name: main
        image: "nginx:2.0"
        env: [{name: B, value: b}, {name: A, value: token-hunter4}]
        args: [--one, --three, --a-rather-long-argument=with-a-long-value-to-be-cut, --four]
      volumes: []
---
{apiVersion: example.com/v2, kind: Widget, metadata: {name: w}, spec: {size: 1}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: new}}
---
{apiVersion: example.com/v1, kind: Aardvark, metadata: {name: b}}
---
{apiVersion: example.com/v1, kind: Aardvark, metadata: {name: a}}
`

func texts(changes []diff.Change) []string {
	var lines []string
	for _, change := range changes {
		lines = append(lines, change.String())
	}

	return lines
}

func TestCompare_verbs(t *testing.T) {
	t.Parallel()

	redact := func(text string) string { return strings.ReplaceAll(text, "hunter4", "(sensitive)") }

	want := []string{
		"add Namespace new",
		`change ServiceAccount apps/web: the labels helm.sh/chart`,
		`change Secret apps/web:
  data.a: (sensitive) -> (sensitive)
  data.b removed: (sensitive)
  stringData added: (sensitive)
  type: "Opaque" -> "kubernetes.io/tls"`,
		"remove ConfigMap apps/gone",
		"remove PersistentVolumeClaim apps/data from the release: the object stays (resource-policy keep)",
		`change Deployment apps/web:
  metadata.labels.app: "web" -> "site"
  spec.replicas: 1 -> 2
  spec.template.metadata.annotations.checksum/config changed
  spec.template.spec.containers[main].args: removed "--two", added "--four"
  spec.template.spec.containers[main].env[A].value: "a" -> "token-(sensitive)"
  spec.template.spec.containers[main].image: "nginx:1.0" -> "nginx:2.0"
  spec.template.spec.containers[side] removed: {"image":"side","name":"side"}
  spec.template.spec.volumes added: []
  the labels app.kubernetes.io/version and helm.sh/chart`,
		"add Aardvark apps/a",
		"add Aardvark apps/b",
		`change Widget apps/w: apiVersion: "example.com/v1" -> "example.com/v2"`,
	}

	if delta := cmp.Diff(want, texts(diff.Compare(parse(t, before), parse(t, after), redact))); delta != "" {
		t.Error(delta)
	}
}

func TestCompare_same(t *testing.T) {
	t.Parallel()

	objects := parse(t, before)

	other := parse(t, before)
	slices.Reverse(other)

	if changes := diff.Compare(objects, other, nil); len(changes) > 0 {
		t.Errorf("changes %v", changes)
	}
}

// TestCompare_hidesSecrets is for the ways in which the content of a Secret may change.
func TestCompare_hidesSecrets(t *testing.T) {
	t.Parallel()

	secret := func(rest string) string {
		return "{apiVersion: v1, kind: Secret, metadata: {name: a" + rest + "}\n"
	}

	const applied = `, annotations: {"kubectl.kubernetes.io/last-applied-configuration": `

	forms := []string{
		secret("}"), secret("}, data: {a: hunter2}"), secret("}, data: {a: hunter3, .b: hunter4}"),
		secret("}, stringData: {a: hunter5}"),
		secret("}, data: hunter6"), secret(applied + "hunter7}}"), secret(applied + "hunter8}}"),
	}

	for _, old := range forms {
		for _, changed := range forms {
			for _, change := range diff.Compare(parse(t, old), parse(t, changed), nil) {
				for _, field := range change.Fields {
					if strings.Contains(field.Old+field.New, "hunter") || strings.Contains(change.String(), "hunter") {
						t.Errorf("%s -> %s tells %v", old, changed, change)
					}
				}
			}
		}
	}
}

func TestChange_longOnesAreCut(t *testing.T) {
	t.Parallel()

	fields := make([]diff.Field, 0, 40)
	for range 40 {
		fields = append(fields, diff.Field{
			Path: "spec.x", Old: `"` + strings.Repeat("ä", 300) + `"`, New: `{"a":"` + strings.Repeat("b", 300) + `"}`,
		})
	}

	change := diff.Change{Verb: diff.Alter, Object: diff.Object{Kind: "Widget", Name: "w"}, Fields: fields}

	lines := strings.Split(change.String(), "\n")
	if len(lines) != 12 || lines[11] != "  … and 30 more fields" {
		t.Errorf("%d lines, the last is %s", len(lines), lines[len(lines)-1])
	}

	want := `  spec.x: "` + strings.Repeat("ä", 79) + `… -> {"a":"` + strings.Repeat("b", 74) + "…"
	if lines[1] != want {
		t.Errorf("%s, want %s", lines[1], want)
	}
}

func TestField_longValuesShowWhereTheyDiffer(t *testing.T) {
	t.Parallel()

	start := "line one is quite long, and so long that the end of it is cut: " + strings.Repeat("x", 60)
	many := func(n int, of string) string { return strings.Repeat(of+"\n", n) }

	for name, tc := range map[string]struct{ before, after, want string }{
		"lines": {
			before: start + "\nhosts=1\nworkers=4\n", after: start + "\nhosts=1\nworkers=8\n",
			want: `line 3: "workers=4" -> "workers=8"`,
		},
		"added": {before: "a\nb\n", after: "a\nnew\nmore\nb\n", want: "2 lines added"},
		"moved": {before: "a\nb\nc\nd\n", after: "b\nc\nd\nA\n", want: "1 line added, 1 line removed"},
		"many": {
			before: "1\n2\n3\n4\n5\n6\n", after: "1\n<\n>\n&\n.\n6\n7\n",
			want: `line 2: "2" -> "<", line 3: "3" -> ">", line 4: "4" -> "&", 1 more line changed, 1 line added`,
		},
		"one line becomes two": {before: "a", after: "a\nb", want: "1 line added"},
		"the last line end":    {before: "a\nb", after: "a\nb\n", want: "1 line added"},
		"a long line": {
			before: "a\n" + start + "old\n", after: "a\n" + start + "new\n",
			want: `line 2: …` + strings.Repeat("x", 20) + `old" -> …` + strings.Repeat("x", 20) + `new"`,
		},
		"one long line": {
			before: start + "old" + start, after: start + "new" + start,
			want: "…" + strings.Repeat("x", 20) + "old" + start[:57] + "… -> …" + strings.Repeat("x", 20) + "new" + start[:57] +
				"…",
		},
		"very long": {
			before: "a\n" + many(1000, "b"), after: "a\n" + many(1002, "c"),
			want: `line 2: "b" -> "c", line 3: "b" -> "c", line 4: "b" -> "c", 997 more lines changed, 2 lines added`,
		},
	} {
		old, err := json.Marshal(tc.before)
		if err != nil {
			t.Fatal(err)
		}

		changed, err := json.Marshal(tc.after)
		if err != nil {
			t.Fatal(err)
		}

		if got := (diff.Field{Path: "data.conf", Old: string(old), New: string(changed)}).String(); got != "data.conf: "+
			tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}

	hidden := `"` + start + `(sensitive)"`
	if got := (diff.Field{Path: "data.conf", Old: hidden,
		New: hidden}).String(); got != "data.conf changed (sensitive value)" {
		t.Error(got)
	}
}
