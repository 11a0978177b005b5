package release_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/testenv"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// stride is how far apart the changing calls are at which an everyday run kills.
const stride = 3

// changes is whether a call changes something of the release. A kill at a read is one right after the change before it,
// and the Lease of a run is renewed at any time.
func changes(call string) bool {
	method, target, _ := strings.Cut(call, " ")

	return method != http.MethodGet && !strings.Contains(target, "dryRun=All") && !strings.Contains(target, "/leases") &&
		!strings.Contains(target, "/apis/authorization.k8s.io/")
}

// gears is a chart with all that can be half done: a definition and an object of its kind, which is
// the case's own, hooks, and objects that come, stay and go with its versions.
func gears(kind, version string, maps ...string) []byte {
	plural := strings.ToLower(kind) + "s"
	files := map[string]string{
		"crds/crd.yaml": fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.killed.example}
spec:
  group: killed.example
  scope: Namespaced
  names: {kind: %[2]s, listKind: %[2]sList, plural: %[1]s, singular: %[3]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, description: "%[4]s", x-kubernetes-preserve-unknown-fields: true}}
`, plural, kind, strings.ToLower(kind), version),
		"templates/custom.yaml": fmt.Sprintf(
			"apiVersion: killed.example/v1\nkind: %s\nmetadata: {name: gear}\nspec: {version: %q}\n", kind, version),
	}

	for _, name := range maps {
		files["templates/"+name+".yaml"] = strings.Replace(configMap(name, version), "data: {", "data: {of-"+version+": x, ",
			1)
	}

	for _, hook := range []string{"pre-install", "post-install", "pre-upgrade", "post-upgrade"} {
		files["templates/hook-"+hook+".yaml"] = fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata:
  name: %[1]s
  annotations: {helm.sh/hook: %[1]s}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: "registry.example/%[2]s"}]}}
`, hook, version)
	}

	return kubetest.Chart("gears", version, files)
}

// trial is one change that is killed at one of its calls.
type trial struct {
	*place

	kind  string
	first *chart.Package
	next  *chart.Package
}

func newTrial(t *testing.T, name string) *trial {
	t.Helper()

	p := newPlace(t)
	// The name of a kind; namespaces are unique.
	kind := "Gear" + strings.NewReplacer("test-", "", "-", "").Replace(p.namespace) + name
	tr := &trial{
		place: p, kind: kind,
		first: packageOf(t, gears(kind, "1.0.0", "stays", "goes")),
		next:  packageOf(t, gears(kind, "2.0.0", "stays", "comes")),
	}

	t.Cleanup(func() {
		crd := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
			Resource: "customresourcedefinitions"}
		_ = p.real.Dynamic().Resource(crd).Delete(context.WithoutCancel(t.Context()),
			strings.ToLower(kind)+"s.killed.example", metav1.DeleteOptions{})
	})

	return tr
}

func (tr *trial) spec() release.Spec {
	spec := tr.place.spec(nil)
	spec.Options.UpgradeCRDs = true

	return spec
}

// end is all that can be seen of a release when it has come to rest.
func (tr *trial) end(t *testing.T, name release.Name) string {
	t.Helper()

	have, err := tr.Observe(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}

	deployed, pending := 0, 0

	for _, r := range have.History {
		if r.Status == release.Deployed {
			deployed++
		}

		if strings.HasPrefix(r.Status, "pending") {
			pending++
		}
	}

	last, _ := have.Last()
	seen := []string{fmt.Sprintf("%d deployed, %d pending, last: %s %s", deployed, pending, last.Status,
		last.ChartVersion)}
	seen = append(seen, tr.configMaps(t)...)

	gears := schema.GroupVersionResource{Group: "killed.example", Version: "v1", Resource: strings.ToLower(tr.kind) + "s"}
	if list, err := tr.real.Dynamic().Resource(gears).Namespace(tr.namespace).List(t.Context(),
		metav1.ListOptions{}); err == nil {
		for _, item := range list.Items {
			version, _, _ := unstructured.NestedString(item.Object, "spec", "version")
			seen = append(seen, item.GetName()+" "+version)
		}
	}

	return strings.Join(append(seen, tr.hooks(t)...), "\n")
}

// hooks that have run, each with the chart's version.
func (tr *trial) hooks(t *testing.T) []string {
	t.Helper()

	list, err := tr.real.API().BatchV1().Jobs(tr.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}

	ran := map[string]bool{}

	for _, job := range list.Items {
		complete := slices.ContainsFunc(job.Status.Conditions,
			func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobComplete })
		ran[fmt.Sprintf("%s %s %t", job.Name, job.Spec.Template.Spec.Containers[0].Image, complete)] = true
	}

	return slices.Sorted(maps.Keys(ran))
}

// work is a change of a release that may be killed.
type work func(ctx context.Context, c *release.Cluster, tr *trial) error

// through does work at a proxy, and calls struck at the n-th change of it, the answer to which is lost, as is every
// call after it. No change is struck for 0. It returns how many changes were asked for.
func (tr *trial) through(ctx context.Context, t *testing.T, n int, do work, struck func()) (asked int, err error) {
	t.Helper()

	proxy, dead := newFaultProxy(t, tr.real), false

	// What it had sent is done nevertheless. An object of a kind that is new takes seconds (Kubernetes 1.36,
	// customresource_handler.go, serveResource), which a Lease outlasts, but for the short ones of tests.
	proxy.done = struck
	proxy.fault = func(call string, _ int) fault {
		switch {
		case dead:
			return cut
		case !changes(call):
			return pass
		}

		if asked++; asked != n {
			return pass
		}

		dead = true

		return lose
	}

	err = do(ctx, &release.Cluster{API: proxy.client, Pause: pause, LockDuration: time.Second, Grace: time.Second}, tr)

	proxy.lost.Wait()

	proxy.mu.Lock()
	defer proxy.mu.Unlock()

	return asked, err
}

// kill ends work at its n-th change, as the end of its process would. The test fails when there is none.
func (tr *trial) kill(t *testing.T, n int, do work) {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})

	go func() {
		defer close(over)

		if asked, err := tr.through(ctx, t, n, do, cancel); asked < n {
			t.Errorf("only %d changes were asked for: %v", asked, err)
		}

		cancel()
	}()

	// The one that is dead needs no time: its Lease is not given back, and runs out.
	t.Cleanup(func() { cancel(); <-over })

	<-ctx.Done()
}

// atEveryChange kills work at changes that are spread over it, or at all of them, and runs a test after each. Before
// makes what the work begins with.
func atEveryChange(t *testing.T, before func(t *testing.T, tr *trial), do work, after func(t *testing.T, tr *trial)) {
	t.Helper()

	reference := newTrial(t, "r")
	before(t, reference)

	total, err := reference.through(t.Context(), t, 0, do, nil)
	if err != nil || total < fewestChanges {
		t.Fatalf("%d changes, %v", total, err)
	}

	step := stride
	if testenv.Everything() {
		step = 1
	}

	for n := 1; n <= total; n += step {
		t.Run(fmt.Sprintf("%d of %d", n, total), func(t *testing.T) {
			t.Parallel()

			tr := newTrial(t, "b")
			before(t, tr)
			tr.kill(t, n, do)
			after(t, tr)
		})
	}
}

// fewestChanges is how many changes each of the killed runs consists of, at least.
const fewestChanges = 6

func nothing(*testing.T, *trial) {}

func installed(t *testing.T, tr *trial) {
	t.Helper()
	tr.apply(t, tr.spec(), tr.first, release.Intent{Create: true})
}

func applyFirst(ctx context.Context, c *release.Cluster, tr *trial) error {
	_, err := c.Apply(ctx, tr.spec(), tr.first, release.Intent{Create: true})

	return err
}

func applyNext(ctx context.Context, c *release.Cluster, tr *trial) error {
	_, err := c.Apply(ctx, tr.spec(), tr.next, release.Intent{})

	return err
}

func TestInstall_killedAtEveryChange(t *testing.T) {
	t.Parallel()

	reference := newTrial(t, "a")
	installed(t, reference)
	want := reference.end(t, reference.spec().Name)

	atEveryChange(t, nothing, applyFirst, func(t *testing.T, tr *trial) {
		t.Helper()
		installed(t, tr)
		same(t, "end", tr.end(t, tr.spec().Name), want)
	})
}

func TestUpgrade_killedAtEveryChange(t *testing.T) {
	t.Parallel()

	reference := newTrial(t, "a")
	installed(t, reference)
	reference.apply(t, reference.spec(), reference.next, release.Intent{})
	want := reference.end(t, reference.spec().Name)

	atEveryChange(t, installed, applyNext, func(t *testing.T, tr *trial) {
		t.Helper()
		tr.apply(t, tr.spec(), tr.next, release.Intent{})
		same(t, "end", tr.end(t, tr.spec().Name), want)
	})
}

// Undoing the change after the kill leaves nothing of it.
func TestUpgrade_killedAtEveryChangeAndTakenBack(t *testing.T) {
	t.Parallel()

	reference := newTrial(t, "a")
	installed(t, reference)
	want, _, _ := strings.Cut(reference.end(t, reference.spec().Name), "post-install")

	atEveryChange(t, installed, applyNext, func(t *testing.T, tr *trial) {
		t.Helper()
		tr.apply(t, tr.spec(), tr.first, release.Intent{})

		end, _, _ := strings.Cut(tr.end(t, tr.spec().Name), "post-install")
		same(t, "end", end, want)
	})
}

func TestRemove_killedAtEveryChange(t *testing.T) {
	t.Parallel()

	o := release.RemoveOptions{Wait: true, Timeout: testTimeout}
	remove := func(ctx context.Context, c *release.Cluster, tr *trial) error {
		return c.Remove(ctx, tr.spec().Name, o)
	}

	atEveryChange(t, installed, remove, func(t *testing.T, tr *trial) {
		t.Helper()

		name := tr.spec().Name
		if err := tr.Remove(t.Context(), name, o); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}

		same(t, "statuses", tr.statuses(t, name), "")
		same(t, "objects", tr.configMaps(t), []string(nil))

		if leases := tr.leases(t, name); leases != 0 {
			t.Errorf("%d Leases stay", leases)
		}
	})
}
