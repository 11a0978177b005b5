package postrender_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/helm/postrender"
)

// plain is a manifest that a whole build of kustomize takes.
const plain = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: apps, labels: {app: web}}
spec:
  template:
    spec:
      containers:
      - name: main
        image: "nginx:1.0"
        args: [--a]
        env: [{name: A, value: "1"}, {name: B, value: "2"}]
        ports: [{containerPort: 80}, {containerPort: 81}]
      - {name: side, image: side}
      tolerations: [{key: a}, {key: b}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: apps}
spec: {ports: [{port: 80, protocol: TCP, name: a}, {port: 81, protocol: TCP, name: b}], selector: {app: web}}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: web, namespace: apps}
spec: {list: [{name: a, value: 1}, {name: b, value: 2}], map: {a: 1, b: 2}}
`

// TestRenderer_asKustomize compares with a build of kustomize.
func TestRenderer_asKustomize(t *testing.T) {
	t.Parallel()

	for name, patch := range map[string]postrender.Patch{
		"lists of named things": {
			Patch: "spec: {template: {spec: {containers: [{name: new, image: new}, {name: main, env: [{name: B, value: '3'}, " +
				"{name: C, value: '4'}]}]}}}",
			Target: on("Deployment", ""),
		},
		"ports": {
			Patch: "spec: {template: {spec: {containers: [{name: main, ports: [{containerPort: 81, name: x}, {containerPort: " +
				"82}]}]}}}",
			Target: on("Deployment", ""),
		},
		"directives": {
			Patch:  "spec: {template: {spec: {containers: [{name: side, $patch: delete}], tolerations: [{key: c}]}}}",
			Target: on("Deployment", ""),
		},
		"replace": {Patch: "spec: {$patch: replace, template: {spec: {containers: [{name: x}]}}}",
			Target: on("Deployment", "")},
		"service": {Patch: "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: apps}\nspec: {ports: " +
			"[{port: 81, protocol: TCP, name: c}], selector: null}"},
		"unknown kind": {Patch: "spec: {list: [{name: c}], map: {b: null, c: 3}}", Target: on("Widget", "")},
		"annotations":  {Patch: "metadata: {annotations: {a: b}}", Target: &postrender.Target{Name: "w.*"}},
		"JSON operations": {
			Patch: "- {op: add, path: /spec/template/spec/containers/-, value: {name: x}}\n- {op: copy, from: " +
				"/metadata/labels/app, path: /metadata/labels/b}\n",
			Target: on("Deployment", "web"),
		},
		"JSON with group": {Patch: `[{"op": "remove", "path": "/spec/map/a"}]`,
			Target: &postrender.Target{Group: "example.com"}},
		"delete": {Patch: "$patch: delete", Target: on("Service", "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			ours := contents(objects(t, run(t, plain, patch)))
			theirs := contents(objects(t, kustomize(t, plain, patch)))

			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func contents(objects []diff.Object) map[string]any {
	found := map[string]any{}
	for _, object := range objects {
		found[object.String()] = object.Content
	}

	return found
}

// kustomize is the result of a build of the same. Its patches on a target must have a name.
func kustomize(t *testing.T, rendered string, patch postrender.Patch) string {
	t.Helper()

	text := patch.Patch

	var merge map[string]any
	if err := yaml.Unmarshal([]byte(text), &merge); err == nil && patch.Target != nil {
		metadata, _ := merge["metadata"].(map[string]any)
		if metadata == nil {
			metadata = map[string]any{}
		}

		metadata["name"] = "any"
		merge["metadata"], merge["kind"] = metadata, "Any"

		encoded, err := yaml.Marshal(merge)
		if err != nil {
			t.Fatal(err)
		}

		text = string(encoded)
	}

	entry := map[string]any{"patch": text}
	if patch.Target != nil {
		entry["target"] = map[string]any{"group": patch.Target.Group, "kind": patch.Target.Kind, "name": patch.Target.Name}
	}

	kustomization, err := yaml.Marshal(map[string]any{"resources": []string{"all.yaml"}, "patches": []any{entry}})
	if err != nil {
		t.Fatal(err)
	}

	files := filesys.MakeFsInMemory()

	for name, content := range map[string][]byte{"all.yaml": []byte(rendered), "kustomization.yaml": kustomization} {
		if err := files.WriteFile(name, content); err != nil {
			t.Fatal(err)
		}
	}

	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, ".")
	if err != nil {
		t.Fatal(err)
	}

	all, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}

	return string(all)
}
