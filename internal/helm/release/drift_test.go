package release_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/helm/diff"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/helm/values"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

func TestDrift_depths(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), packageOf(t, kubetest.Simple.Package("1.0.0"))
	spec := p.spec(map[string]any{"message": "hello", "password": "swordfish-swordfish"})
	p.apply(t, spec, chart, release.Intent{Create: true})

	deployed, _ := p.observed(t, spec.Name).Deployed()
	drift := func(o release.DriftOptions) []string {
		t.Helper()

		o.Release, o.Secrets = spec.Name, values.Secrets{"hush-hush-hush"}

		lines, err := p.Drift(t.Context(), deployed, o)
		if err != nil {
			t.Fatal(err)
		}

		return lines
	}

	same(t, "untouched", drift(release.DriftOptions{Depth: release.DepthObjects}), []string(nil))

	api, at := p.real.API(), p.namespace
	patches := map[string]func(patch string) error{
		"configmap": func(patch string) error {
			_, err := api.CoreV1().ConfigMaps(at).Patch(t.Context(), "web", types.MergePatchType, []byte(patch),
				metav1.PatchOptions{})

			return err
		},
		"secret": func(patch string) error {
			_, err := api.CoreV1().Secrets(at).Patch(t.Context(), "web", types.MergePatchType, []byte(patch),
				metav1.PatchOptions{})

			return err
		},
		"deployment": func(patch string) error {
			_, err := api.AppsV1().Deployments(at).Patch(t.Context(), "web", types.MergePatchType, []byte(patch),
				metav1.PatchOptions{})

			return err
		},
	}

	for what, patch := range map[string]string{
		"configmap":  `{"data":{"message":"hush-hush-hush"}}`,
		"secret":     `{"data":{"password":"b3RoZXI="}}`,
		"deployment": `{"spec":{"replicas":3,"template":{"spec":{"containers":null}}},"metadata":{"labels":{"more":"label"}}}`,
	} {
		if what == "deployment" {
			patch = `{"spec":{"replicas":3},"metadata":{"labels":{"more":"label"}}}`
		}

		if err := patches[what](patch); err != nil {
			t.Fatal(err)
		}
	}

	if err := api.CoreV1().Services(at).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	lines := drift(release.DriftOptions{Depth: release.DepthObjects})
	all := strings.Join(lines, "\n")

	for _, want := range []string{
		"ConfigMap " + at + "/web: data.message is", `instead of "hello"`,
		"Deployment " + at + "/web: spec.replicas is 3 instead of 1",
		"Secret " + at + "/web: data.password is another one", "Service " + at + "/web is missing",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in:\n%s", want, all)
		}
	}

	if len(lines) != 4 || strings.Contains(all, "hush-hush") || strings.Contains(all, "b3RoZXI") {
		t.Errorf("drift:\n%s", all)
	}

	same(t, "presence", drift(release.DriftOptions{Depth: release.DepthPresence}),
		[]string{"Service " + at + "/web is missing"})
	same(t, "release", drift(release.DriftOptions{Depth: release.DepthRelease}), []string(nil))
	same(t, "ignored", drift(release.DriftOptions{Ignore: []release.Ignore{
		{Kind: "Deployment", Name: "w*", Paths: []string{"spec.replicas"}}, {Kind: "Service"},
		{Kind: "Secret", Paths: []string{"data.*"}},
		{Kind: "ConfigMap", Namespace: at, Paths: []string{"data"}},
	}}), []string(nil))

	p.apply(t, spec, chart, release.Intent{Repair: true})
	deployed, _ = p.observed(t, spec.Name).Deployed()
	same(t, "repaired", drift(release.DriftOptions{}), []string(nil))
}

// Helm by itself never observes what became of a custom resource.
func TestApply_repairsCustomResources(t *testing.T) {
	t.Parallel()

	tr := newTrial(t, "c")
	spec := tr.spec()
	tr.apply(t, spec, tr.first, release.Intent{Create: true})

	gears := schema.GroupVersionResource{Group: "killed.example", Version: "v1", Resource: strings.ToLower(tr.kind) + "s"}
	if _, err := tr.real.Dynamic().Resource(gears).Namespace(tr.namespace).Patch(t.Context(), "gear", types.MergePatchType,
		[]byte(`{"spec":{"version":"by hand","theirs":true}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}

	deployed, _ := tr.observed(t, spec.Name).Deployed()

	lines, err := tr.Drift(t.Context(), deployed, release.DriftOptions{Release: spec.Name})
	if err != nil {
		t.Fatal(err)
	}

	same(t, "drift", lines, []string{tr.kind + " " + tr.namespace + `/gear: spec.version is "by hand" instead of "1.0.0"`})

	tr.apply(t, spec, tr.first, release.Intent{Repair: true})

	live, err := tr.real.Dynamic().Resource(gears).Namespace(tr.namespace).Get(t.Context(), "gear", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}

	same(t, "repaired", toJSON(t, live.Object["spec"]), `{"theirs":true,"version":"1.0.0"}`)
}

// The API seldom returns objects as charts write them: none of that is drift.
func TestDrift_noneOfOddObjects(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	chart := packageOf(t, kubetest.Chart("odd", "1.0.0", map[string]string{
		"templates/role.yaml": `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "{{ .Release.Namespace }}-odd", namespace: "{{ .Release.Namespace }}"}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
`,
		"templates/bare-role.yaml": `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "{{ .Release.Namespace }}-bare"}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
`,
		"templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: odd}\nstringData: {key: value}\n",
		"templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: odd
  annotations:
  labels: {app: odd, empty: ""}
spec:
  selector: {matchLabels: {app: odd}}
  strategy: null
  template:
    metadata: {labels: {app: odd}, annotations: null}
    spec:
      nodeSelector: {}
      tolerations: []
      containers:
      - name: main
        image: registry.example/odd
        args: null
        ports: [{containerPort: 80}, {containerPort: 53, protocol: UDP}]
        env: [{name: A, value: ""}, {name: B, value: "1"}]
        resources: {limits: {cpu: 1000m, memory: 1024Mi}, requests: {cpu: 0.5}}
`,
		"templates/list.yaml": "apiVersion: v1\nkind: List\nitems:\n- " +
			strings.ReplaceAll(strings.TrimSpace(configMap("listed", "x")), "\n", "\n  ") + "\n",
	}))
	spec := p.spec(nil)
	p.apply(t, spec, chart, release.Intent{Create: true})

	deployed, _ := p.observed(t, spec.Name).Deployed()

	lines, err := p.Drift(t.Context(), deployed, release.DriftOptions{Release: spec.Name})
	if err != nil {
		t.Fatal(err)
	}

	same(t, "drift", lines, []string(nil))

	roles := p.real.API().RbacV1().ClusterRoles()
	for _, name := range []string{"-odd", "-bare"} {
		if err := roles.Delete(t.Context(), p.namespace+name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	if lines, err := p.Drift(t.Context(), deployed, release.DriftOptions{Release: spec.Name}); err != nil ||
		len(lines) != 2 {
		t.Errorf("drift: %v %v", lines, err)
	}

	if err := p.Remove(t.Context(), spec.Name, release.RemoveOptions{Wait: true}); err != nil {
		t.Fatal(err)
	}
}

func TestIgnore_paths(t *testing.T) {
	t.Parallel()

	for _, tc := range []struct {
		pattern, path string
		covers        bool
	}{
		{"spec.replicas", "spec.replicas", true},
		{"spec", "spec.replicas", true},
		{"spec.replicas", "spec", false},
		{"spec.replicas", "spec.replicasMore", false},
		{"*.replicas", "spec.replicas", true},
		{"spec.template.spec.containers[web].image", "spec.template.spec.containers[web].image", true},
		{"spec.template.spec.containers.*.image", "spec.template.spec.containers[web].image", true},
		{"spec.template.spec.containers[*].resources", "spec.template.spec.containers[web].resources.limits", true},
		{"spec.template.spec.containers[web].image", "spec.template.spec.containers[db].image", false},
		{"metadata.annotations[example.com/owner]", "metadata.annotations[example.com/owner]", true},
		{"data[a.b]", "data[a.b].c", true},
		{"data[a.b]", "data.a.b", false},
	} {
		if got := release.Covers(tc.pattern, tc.path); got != tc.covers {
			t.Errorf("%s covers %s: %t", tc.pattern, tc.path, got)
		}
	}
}

// An object that ends by itself may be missing for that reason.
func TestDrift_noneOfEndedObjects(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	job := func(name, spec string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: " + name + "}\nspec:\n" + spec +
			"  template: {spec: {restartPolicy: Never, containers: [{name: main, image: registry.example/job}]}}\n"
	}
	pod := func(name, policy string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec: {restartPolicy: " + policy +
			", containers: [{name: main, image: registry.example/pod}]}\n"
	}
	chart := packageOf(t, kubetest.Chart("ends", "1.0.0", map[string]string{
		"templates/once.yaml":  job("once", "  ttlSecondsAfterFinished: 0\n"),
		"templates/stays.yaml": job("stays", "  backoffLimit: 1\n"),
		"templates/never.yaml": pod("never", "Never"), "templates/on-failure.yaml": pod("on-failure", "OnFailure"),
		"templates/always.yaml": pod("always", "Always"),
	}))
	spec := p.spec(nil)
	spec.Options.Wait = false
	p.apply(t, spec, chart, release.Intent{Create: true})

	api, now := p.real.API(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}

	for _, name := range []string{"never", "on-failure", "always"} {
		if err := api.CoreV1().Pods(p.namespace).Delete(t.Context(), name, now); err != nil {
			t.Fatal(err)
		}
	}

	if err := api.BatchV1().Jobs(p.namespace).Delete(t.Context(), "stays", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	if err := wait.Until(t.Context(), pause, func(ctx context.Context) error {
		_, err := api.BatchV1().Jobs(p.namespace).Get(ctx, "once", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}

		return errors.Join(errors.New("it is still there"), err)
	}); err != nil {
		t.Fatal(err)
	}

	deployed, _ := p.observed(t, spec.Name).Deployed()

	for _, depth := range []release.Depth{release.DepthObjects, release.DepthPresence} {
		lines, err := p.Drift(t.Context(), deployed, release.DriftOptions{Release: spec.Name, Depth: depth})
		if err != nil {
			t.Fatal(err)
		}

		same(t, string(depth), lines, []string{"Job " + p.namespace + "/stays is missing",
			"Pod " + p.namespace + "/always is missing"})
	}
}

// An aggregated API that does not answer hides nothing of the others.
func TestDrift_silentAPI(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), oneMap(t, "1.0.0", "a", "b", "c")
	spec := p.spec(nil)
	p.apply(t, spec, chart, release.Intent{Create: true})

	deployed, _ := p.observed(t, spec.Name).Deployed()

	if err := p.real.API().CoreV1().ConfigMaps(p.namespace).Delete(t.Context(), "c", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	proxy := newFaultProxy(t, p.real)
	p.API = proxy.client

	silent := "/configmaps/a"
	proxy.fault = func(call string, _ int) fault {
		if strings.Contains(call, silent) {
			return cut
		}

		return pass
	}

	lines, err := p.Drift(t.Context(), deployed, release.DriftOptions{Release: spec.Name})
	same(t, "drift", lines, []string{"ConfigMap " + p.namespace + "/c is missing"})

	if err == nil || errors.Is(err, api.ErrNoAnswer) ||
		!strings.Contains(err.Error(), "ConfigMap "+p.namespace+"/a") {
		t.Errorf("what was not compared: %v", err)
	}

	silent = ""

	if lines, err := p.Drift(t.Context(), deployed, release.DriftOptions{Release: spec.Name}); !errors.Is(err,
		api.ErrNoAnswer) || len(lines) > 0 {
		t.Errorf("nothing answers: %v %v", lines, err)
	}
}

// An API that does not answer costs one wait, not one for each object.
func TestDrift_manyObjectsOfSilentAPI(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	web := release.Name{Namespace: p.namespace, Name: "web"}

	var revision release.Revision

	for i := range 100 {
		name := fmt.Sprintf("silent-%d", i)
		revision.Objects = append(revision.Objects, diff.Object{
			APIVersion: "v1", Kind: "ConfigMap", Namespace: p.namespace, Name: name,
			Content: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}},
		})
	}

	first := diff.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: p.namespace, Name: "gone",
		Content: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "gone"},
		}}
	revision.Objects = append([]diff.Object{first}, revision.Objects...)

	proxy := newFaultProxy(t, p.real)
	p.API = proxy.client
	asked := map[string]bool{}
	proxy.fault = func(call string, _ int) fault {
		if _, name, found := strings.Cut(call, "/configmaps/silent-"); found {
			asked[name] = true

			return cut
		}

		return pass
	}

	lines, err := p.Drift(t.Context(), revision, release.DriftOptions{Release: web, Depth: release.DepthPresence})
	same(t, "drift", lines, []string{"ConfigMap " + p.namespace + "/gone is missing"})

	if err == nil || errors.Is(err, api.ErrNoAnswer) || !strings.Contains(err.Error(), "more were not checked") {
		t.Errorf("%v", err)
	}

	if len(asked) > 20 {
		t.Errorf("%d objects were asked for", len(asked))
	}
}
