package release_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/talosop/terraform-provider-talosop/internal/addon/addontest"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
)

// everyCall takes every call where other runs take some (make testeverycall).
const everyCall = "TALOSOP_TEST_EVERY_CALL"

// stride is how many calls an everyday run leaves out between two.
const stride = 31

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
		"templates/custom.yaml": fmt.Sprintf("apiVersion: killed.example/v1\nkind: %s\nmetadata: {name: gear}\nspec: {version: %q}\n", kind, version),
	}

	for _, name := range maps {
		files["templates/"+name+".yaml"] = strings.Replace(configMap(name, version), "data: {", "data: {of-"+version+": x, ", 1)
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

	return addontest.Chart("gears", version, files)
}

// trial is one change that is killed at one of its calls.
type trial struct {
	*place

	kind  string
	first *release.Package
	next  *release.Package
}

func newTrial(t *testing.T, name string) *trial {
	t.Helper()

	p := newPlace(t)
	// The name of a kind; namespaces are unique.
	kind := "Gear" + strings.NewReplacer("test-", "", "-", "").Replace(p.namespace) + name
	tr := &trial{
		place: p, kind: kind,
		first: packageOf(t, gears(kind, "1.0.0", "stays", "goes")), next: packageOf(t, gears(kind, "2.0.0", "stays", "comes")),
	}

	t.Cleanup(func() {
		crd := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
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
	seen := []string{fmt.Sprintf("%d deployed, %d pending, last: %s %s", deployed, pending, last.Status, last.ChartVersion)}
	seen = append(seen, tr.configMaps(t)...)

	gears := schema.GroupVersionResource{Group: "killed.example", Version: "v1", Resource: strings.ToLower(tr.kind) + "s"}
	if list, err := tr.real.Dynamic().Resource(gears).Namespace(tr.namespace).List(t.Context(), metav1.ListOptions{}); err == nil {
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
		complete := slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobComplete })
		ran[fmt.Sprintf("%s %s %t", job.Name, job.Spec.Template.Spec.Containers[0].Image, complete)] = true
	}

	return slices.Sorted(maps.Keys(ran))
}

// killed does work through a proxy that shuts at the n-th call, as the process that is killed then
// would. It reports whether there were that many.
func (tr *trial) killed(t *testing.T, n int, work func(ctx context.Context, c *release.Cluster) error) bool {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	proxy, dead := newFaultProxy(t, tr.real), false
	over := make(chan error, 1)

	proxy.fault = func(_ string, at int) fault {
		switch {
		case at < n:
			return pass
		case at == n:
			dead = true

			cancel()

			// What it had sent is done all the same.
			return lose
		default:
			return cut
		}
	}

	c := &release.Cluster{API: proxy.client, Pause: pause, LockDuration: time.Second, Grace: time.Second}
	go func() { over <- work(ctx, c) }()

	var once sync.Once
	wait := func() (err error) { once.Do(func() { err = <-over }); return err }

	// The one that is dead needs no time: its Lease is not given back, and runs out.
	t.Cleanup(func() { cancel(); _ = wait() })

	select {
	case <-ctx.Done():
		return true
	case err := <-over:
		over <- nil

		proxy.mu.Lock()
		defer proxy.mu.Unlock()

		if !dead && err != nil {
			t.Fatalf("not killed, and yet: %v", err)
		}

		return dead
	}
}

// atEveryCall runs a test for calls that are spread over a change, or all of them, until there
// are no more.
func atEveryCall(t *testing.T, test func(t *testing.T, n int) (killed bool)) {
	t.Helper()

	addontest.Shared(t)

	step := stride
	if os.Getenv(everyCall) != "" {
		step = 1
	}

	// As many at a time as the machine has in it: they wait most of the time.
	const side = 6

	for first, more := 1, true; more && !t.Failed(); first += side * step {
		t.Run(fmt.Sprintf("from %d", first), func(t *testing.T) {
			for i := range side {
				n := first + i*step

				t.Run(fmt.Sprint(n), func(t *testing.T) {
					t.Parallel()

					if !test(t, n) {
						more = false
					}
				})
			}
		})
	}
}

func TestInstallationKilledAtEveryCall(t *testing.T) {
	t.Parallel()

	reference := newTrial(t, "a")
	reference.apply(t, reference.spec(), reference.first, release.Intent{Create: true})
	want := reference.end(t, reference.spec().Name)

	atEveryCall(t, func(t *testing.T, n int) bool {
		tr := newTrial(t, "b")
		killed := tr.killed(t, n, func(ctx context.Context, c *release.Cluster) error {
			_, err := c.Apply(ctx, tr.spec(), tr.first, release.Intent{Create: true})

			return err
		})

		tr.apply(t, tr.spec(), tr.first, release.Intent{Create: true})
		same(t, "end", tr.end(t, tr.spec().Name), want)

		return killed
	})
}

func TestUpgradeKilledAtEveryCall(t *testing.T) {
	t.Parallel()

	reference := newTrial(t, "a")
	reference.apply(t, reference.spec(), reference.first, release.Intent{Create: true})
	reference.apply(t, reference.spec(), reference.next, release.Intent{})
	want := reference.end(t, reference.spec().Name)

	atEveryCall(t, func(t *testing.T, n int) bool {
		tr := newTrial(t, "b")
		tr.apply(t, tr.spec(), tr.first, release.Intent{Create: true})

		killed := tr.killed(t, n, func(ctx context.Context, c *release.Cluster) error {
			_, err := c.Apply(ctx, tr.spec(), tr.next, release.Intent{})

			return err
		})

		tr.apply(t, tr.spec(), tr.next, release.Intent{})
		same(t, "end", tr.end(t, tr.spec().Name), want)

		return killed
	})
}

// Who thinks better of it after the kill has nothing left of what was begun.
func TestUpgradeKilledAtEveryCallAndTakenBack(t *testing.T) {
	t.Parallel()

	reference := newTrial(t, "a")
	reference.apply(t, reference.spec(), reference.first, release.Intent{Create: true})
	want, _, _ := strings.Cut(reference.end(t, reference.spec().Name), "post-install")

	atEveryCall(t, func(t *testing.T, n int) bool {
		tr := newTrial(t, "b")
		tr.apply(t, tr.spec(), tr.first, release.Intent{Create: true})

		killed := tr.killed(t, n, func(ctx context.Context, c *release.Cluster) error {
			_, err := c.Apply(ctx, tr.spec(), tr.next, release.Intent{})

			return err
		})

		tr.apply(t, tr.spec(), tr.first, release.Intent{})

		end, _, _ := strings.Cut(tr.end(t, tr.spec().Name), "post-install")
		same(t, "end", end, want)

		return killed
	})
}

func TestRemovalKilledAtEveryCall(t *testing.T) {
	t.Parallel()

	o := release.RemoveOptions{Wait: true, Timeout: testTimeout}

	atEveryCall(t, func(t *testing.T, n int) bool {
		tr := newTrial(t, "b")
		spec := tr.spec()
		tr.apply(t, spec, tr.first, release.Intent{Create: true})

		killed := tr.killed(t, n, func(ctx context.Context, c *release.Cluster) error { return c.Remove(ctx, spec.Name, o) })

		if err := tr.Remove(t.Context(), spec.Name, o); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}

		same(t, "statuses", tr.statuses(t, spec.Name), "")
		same(t, "objects", tr.configMaps(t), []string(nil))

		if leases := tr.leases(t, spec.Name); leases != 0 {
			t.Errorf("%d Leases stay", leases)
		}

		return killed
	})
}
