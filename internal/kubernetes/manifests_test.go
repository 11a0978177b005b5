package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// ssaTalos is a Talos that applies its manifests on the server's side, oldTalos one that
// does not.
const ssaTalos, oldTalos = "v1.13.0", "v1.12.6"

func manifestsOf(t *testing.T, documents ...string) []map[string]any {
	t.Helper()

	var out []map[string]any

	for _, d := range documents {
		var object map[string]any

		check(t, yaml.Unmarshal([]byte(d), &object))
		out = append(out, object)
	}

	return out
}

func configMap(name, key, value string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: kube-system}, data: {%s: %q}}",
		name, key, value)
}

const (
	widgetDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Cluster
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
	widget   = "{apiVersion: example.org/v1, kind: Widget, metadata: {name: small}, spec: {size: 1}}"
	addons   = "{apiVersion: v1, kind: Namespace, metadata: {name: addons}}"
	inAddons = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: addon, namespace: addons}}"
	workload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: workload, namespace: kube-system}
spec:
  replicas: 1
  selector: {matchLabels: {app: workload}}
  template:
    metadata: {labels: {app: workload}}
    spec: {containers: [{name: main, image: "example.org/app:1"}]}
`
)

func TestSyncManifests_onAnAPIServer(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]func(*testing.T, *living){
		"create, again, change, prune": testSyncRounds,
		"adopts what Talos made":       testSyncAdopts,
		"keeps what it may not prune":  testSyncKeeps,
		"leaves another inventory":     testSyncLeavesAnotherInventory,
		"names what is refused":        testSyncNamesWhatIsRefused,
		"waits for what it changed":    testSyncWaits,
		"before Talos 1.13":            testSyncBefore113,
		"endpoint drops half way":      testSyncEndpointDrops,
		"is interrupted":               testSyncInterrupted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			l := newLiving(t, assets(t))
			l.withoutManifests(t)
			test(t, l)
		})
	}
}

// withoutManifests removes the objects that Talos itself created, as if they were no longer manifests.
func (l *living) withoutManifests(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		inventory, err := l.api.CoreV1().ConfigMaps("kube-system").Get(
			t.Context(), constants.KubernetesBootstrapManifestsInventoryName, metav1.GetOptions{})
		if err == nil && len(inventory.Data) == 0 {
			return errors.New("the inventory is empty")
		}

		return err
	})
	check(t, l.client(t).SyncManifests(within(t, time.Minute), nil, ssaTalos, false))

	if got := l.inventory(t); got != "" {
		t.Fatalf("left in the inventory: %s", got)
	}
}

func testSyncRounds(t *testing.T, l *living) {
	t.Helper()

	var reported []string

	l.options.Progress = func(message string) { reported = append(reported, message) }
	client := l.client(t)
	sync := func(documents ...string) {
		t.Helper()

		reported = nil
		check(t, client.SyncManifests(within(t, time.Minute), manifestsOf(t, documents...), ssaTalos, false))
		slices.Sort(reported)
	}

	// Objects of other clients are not pruned.
	l.configMap(t, "theirs", "a", "1", "somebody")

	sync(widget, inAddons, configMap("ours", "a", "1"), configMap("passing", "a", "1"), addons, widgetDefinition)

	if len(reported) != 6 || reported[0] != "manifest ConfigMap/kube-system/ours: created" {
		t.Errorf("got %q", reported)
	}

	ours := l.getConfigMap(t, "ours")
	if m := ours.ManagedFields; len(m) != 1 || m[0].Manager != "talos" ||
		m[0].Operation != metav1.ManagedFieldsOperationApply {
		t.Errorf("managed fields %+v, want those of an apply by talos", m)
	}

	if got := l.inventory(t); got != "_addons__Namespace _small_example.org_Widget "+
		"_widgets.example.org_apiextensions.k8s.io_CustomResourceDefinition addons_addon__ServiceAccount "+
		"kube-system_ours__ConfigMap kube-system_passing__ConfigMap" {
		t.Errorf("inventory %q", got)
	}

	// Again: nothing is written.
	versions := l.versions(t)
	sync(widget, inAddons, configMap("ours", "a", "1"), configMap("passing", "a", "1"), addons, widgetDefinition)

	if got := l.versions(t); got != versions || len(reported) != 0 {
		t.Errorf("a second run wrote: %s, reported %q, want %s", got, reported, versions)
	}

	// A field of another client in our object stays, and one of ours that changes is changed.
	ours.Data["theirs"] = "1"
	_, err := l.api.CoreV1().ConfigMaps("kube-system").Update(t.Context(), ours,
		metav1.UpdateOptions{FieldManager: "somebody"})
	check(t, err)
	sync(widget, inAddons, configMap("ours", "a", "2"), addons, widgetDefinition)

	if got := l.getConfigMap(t, "ours").Data; len(got) != 2 || got["a"] != "2" || got["theirs"] != "1" {
		t.Errorf("data %v", got)
	}

	if want := []string{"manifest ConfigMap/kube-system/ours: configured",
		"manifest ConfigMap/kube-system/passing: deleted"}; !slices.Equal(reported, want) {
		t.Errorf("got %q, want %q", reported, want)
	}

	if _, err := l.api.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "passing",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what is no manifest any more is still there: %v", err)
	}

	l.getConfigMap(t, "theirs")
}

func testSyncKeeps(t *testing.T, l *living) {
	t.Helper()

	client, first, second := l.client(t), configMap("first", "a", "1"), configMap("second", "a", "1")
	check(t, client.SyncManifests(within(t, time.Minute), manifestsOf(t, first, second), ssaTalos, false))
	check(t, client.SyncManifests(within(t, time.Minute), manifestsOf(t, first), ssaTalos, true))
	l.getConfigMap(t, "second")

	check(t, client.SyncManifests(within(t, time.Minute), manifestsOf(t, first), ssaTalos, false))

	if _, err := l.api.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "second",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what was kept is not pruned by the next sync that does: %v", err)
	}
}

func testSyncAdopts(t *testing.T, l *living) {
	t.Helper()
	l.configMap(t, "coredns", "a", "1", "machined")

	check(t, l.client(t).SyncManifests(within(t, time.Minute), manifestsOf(t, configMap("coredns", "a", "2")), ssaTalos, false))

	got := l.getConfigMap(t, "coredns")
	if got.Data["a"] != "2" || got.Annotations["config.k8s.io/owning-inventory"] != constants.KubernetesBootstrapManifestsInventoryName {
		t.Errorf("data %v, annotations %v", got.Data, got.Annotations)
	}
}

func testSyncLeavesAnotherInventory(t *testing.T, l *living) {
	t.Helper()

	_, err := l.api.CoreV1().ConfigMaps("kube-system").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "flux",
			Annotations: map[string]string{"config.k8s.io/owning-inventory": "another"}},
		Data: map[string]string{"a": "1"},
	}, metav1.CreateOptions{})
	check(t, err)

	err = l.client(t).SyncManifests(within(t, time.Minute),
		manifestsOf(t, configMap("first", "a", "1"), configMap("flux", "a", "2")), ssaTalos, false)
	if !wait.IsPermanent(err) || !strings.Contains(fmt.Sprint(err), "v1.ConfigMap/kube-system/flux") {
		t.Errorf("error %v, want a permanent one that names the object", err)
	}

	if got := l.getConfigMap(t, "flux").Data["a"]; got != "1" {
		t.Errorf("the object of another inventory has a = %s", got)
	}

	if _, err := l.api.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "first",
		metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("something was applied all the same: %v", err)
	}
}

func testSyncNamesWhatIsRefused(t *testing.T, l *living) {
	t.Helper()

	for name, object := range map[string]string{
		"invalid": "{apiVersion: v1, kind: Service, metadata: {name: wrong, namespace: kube-system}, spec: {ports: " +
			"[{port: 700000}]}}",
		"unknown kind": "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: wrong, namespace: kube-system}}",
	} {
		for _, talos := range []string{ssaTalos, oldTalos} {
			err := l.client(t).SyncManifests(within(t, time.Minute), manifestsOf(t, configMap("right", "a", "1"), object), talos, false)
			if !wait.IsPermanent(err) || !strings.Contains(fmt.Sprint(err), "wrong") || strings.Contains(fmt.Sprint(err), "\n") {
				t.Errorf("%s, Talos %s: error %v, want a permanent one that names the object in one line", name, talos, err)
			}
		}
	}

	err := l.client(t).SyncManifests(within(t, time.Minute), nil, "edge", false)
	if !wait.IsPermanent(err) || !strings.Contains(fmt.Sprint(err), "read the Talos version") {
		t.Errorf("a Talos without a version: %v", err)
	}
}

func testSyncWaits(t *testing.T, l *living) {
	t.Helper()

	// This image does not exist, so the workload does not get ready, and neither does it when it is not changed
	// any more.
	for _, talos := range []string{ssaTalos, ssaTalos, oldTalos, oldTalos} {
		l.options.Await = 2 * time.Second
		err := l.client(t).SyncManifests(within(t, time.Minute),
			manifestsOf(t, strings.ReplaceAll(workload, "app:1", "app:"+talos)), talos, false)

		if err == nil || wait.IsPermanent(err) ||
			!strings.Contains(err.Error(), "Deployment kube-system/workload: not available: 1 of 1 pods") {
			t.Errorf("not rolled out, Talos %s: %v, want an error that may be repeated and names the deployment", talos, err)
		}
	}

	l.options.Await = time.Minute
	client := l.client(t)

	// Without pods there is nothing to wait for.
	check(t, client.SyncManifests(within(t, time.Minute),
		manifestsOf(t, strings.Replace(workload, "replicas: 1", "replicas: 0", 1)), oldTalos, false))
	check(t, client.SyncManifests(within(t, time.Minute), manifestsOf(t, widgetDefinition, widget), ssaTalos, false))

	// The test is the controller of widgets.
	done := make(chan error, 1)

	for i, status := range []string{"Stalled", "Ready"} {
		size := i + 2
		changed := manifestsOf(t, widgetDefinition, strings.Replace(widget, "size: 1", fmt.Sprint("size: ", size), 1))

		l.reconcileWidget(t, 0, "Ready")

		go func() { done <- client.SyncManifests(t.Context(), changed, ssaTalos, false) }()

		l.reconcileWidget(t, int64(size), status)

		err := <-done
		if stalled := status == "Stalled"; stalled &&
			(!wait.IsPermanent(err) || !strings.Contains(err.Error(), "Widget/small status: 'Failed'")) {
			t.Errorf("stalled: %v, want a permanent error that names the widget", err)
		} else if !stalled && err != nil {
			t.Errorf("reconciled: %v", err)
		}
	}
}

func testSyncBefore113(t *testing.T, l *living) {
	t.Helper()

	client := l.client(t)

	check(t, client.SyncManifests(within(t, time.Minute), manifestsOf(t,
		configMap("ours", "a", "1"), configMap("passing", "a", "1"), widgetDefinition, widget), oldTalos, false))
	check(t, client.SyncManifests(within(t, time.Minute), manifestsOf(t, configMap("ours", "a", "2")), oldTalos, false))

	if got := l.getConfigMap(t, "ours").Data["a"]; got != "2" {
		t.Errorf("a = %s", got)
	}

	l.getConfigMap(t, "passing")

	if got := l.inventory(t); got != "" {
		t.Errorf("an older Talos keeps no inventory, but it has %s", got)
	}

	versions := l.versions(t)
	check(t, client.SyncManifests(within(t, time.Minute), manifestsOf(t, configMap("ours", "a", "2")), oldTalos, false))

	if got := l.versions(t); got != versions {
		t.Errorf("a second run wrote: %s, want %s", got, versions)
	}
}

func (l *living) configMap(t *testing.T, name, key, value, manager string) {
	t.Helper()

	_, err := l.api.CoreV1().ConfigMaps("kube-system").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{key: value},
	}, metav1.CreateOptions{FieldManager: manager})
	check(t, err)
}

func (l *living) getConfigMap(t *testing.T, name string) *corev1.ConfigMap {
	t.Helper()

	got, err := l.api.CoreV1().ConfigMaps("kube-system").Get(t.Context(), name, metav1.GetOptions{})
	check(t, err)

	return got
}

// inventory is the content of Talos's inventory.
func (l *living) inventory(t *testing.T) string {
	t.Helper()

	var names []string
	for name := range l.getConfigMap(t, constants.KubernetesBootstrapManifestsInventoryName).Data {
		names = append(names, name)
	}

	slices.Sort(names)

	return strings.Join(names, " ")
}

// versions are the resource versions of what the tests sync, to see whether it was written.
func (l *living) versions(t *testing.T) string {
	t.Helper()

	client, err := dynamic.NewForConfig(l.config())
	check(t, err)

	var out []string

	for _, resource := range []string{"configmaps.v1.", "serviceaccounts.v1.", "namespaces.v1.",
		"widgets.v1.example.org"} {
		gvr, _ := schema.ParseResourceArg(resource)

		list, err := client.Resource(*gvr).List(t.Context(), metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}

		check(t, err)

		for i := range list.Items {
			out = append(out, list.Items[i].GetName()+"="+list.Items[i].GetResourceVersion())
		}
	}

	return strings.Join(out, " ")
}

// reconcileWidget is the controller of widgets: it gives the widget a condition once it has a
// size, 0 for any.
func (l *living) reconcileWidget(t *testing.T, size int64, condition string) {
	t.Helper()

	client, err := dynamic.NewForConfig(l.config())
	check(t, err)

	widgets := client.Resource(schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"})

	eventually(t, func() error {
		w, err := widgets.Get(t.Context(), "small", metav1.GetOptions{})
		if err != nil {
			return err
		}

		if got, _, err := unstructured.NestedInt64(w.Object, "spec", "size"); err != nil || size != 0 && got != size {
			return errors.Join(fmt.Errorf("size %d", got), err)
		}

		w.Object["status"] = map[string]any{
			"observedGeneration": w.GetGeneration(), "conditions": []any{map[string]any{"type": condition, "status": "True"}},
		}
		_, err = widgets.UpdateStatus(t.Context(), w, metav1.UpdateOptions{})

		return err
	})
}

// eventually waits for a condition.
func eventually(t *testing.T, condition func() error) {
	t.Helper()
	check(t, wait.Until(within(t, time.Minute), 20*time.Millisecond, func(context.Context) error { return condition() }))
}
