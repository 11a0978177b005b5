package release_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/talosop/terraform-provider-talosop/internal/helm/chart"
	"github.com/talosop/terraform-provider-talosop/internal/helm/client"
	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

// discard deletes a namespace that an apply made, without waiting.
func (p *place) discard(t *testing.T, namespace string) {
	t.Helper()

	err := p.real.API().CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// littering is a chart whose removal leaves definitions, hooks and objects that say so.
func littering(t *testing.T, kind string) *chart.Package {
	t.Helper()

	hook := func(name, event, policy string) string {
		return "---\n" + strings.Replace(configMap(name, ""), "{name: "+name+"}", "{name: "+name+
			", annotations: {helm.sh/hook: "+event+", helm.sh/hook-delete-policy: "+policy+"}}", 1)
	}

	return packageOf(t, kubetest.Chart("web", "1.0.0", map[string]string{
		"crds/a.yaml": definitionOf(kind, sizeField),
		"templates/a.yaml": configMap("data", "") + "---\n" + strings.Replace(configMap("kept", ""), "{name: kept}",
			"{name: kept, annotations: {helm.sh/resource-policy: keep}}", 1),
		"templates/hooks.yaml": hook("before", "pre-install", "before-hook-creation") +
			hook("swept", "pre-install", "hook-succeeded") + hook("after", "post-delete", "before-hook-creation"),
		"templates/pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: never, annotations: {" +
			kubetest.NeverReadyAnnotation + ": \"true\"}}\nspec: {containers: [{name: a, image: registry.example/a:1}]}\n",
	}))
}

// What is left of an installation that failed and was taken away is named, and only that.
func TestApply_namesWhatIsLeft(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	kind := p.kindOf("Rag")
	definition := "CustomResourceDefinition " + strings.ToLower(kind) + "s.defined.example"

	spec := p.spec(nil)
	spec.Namespace = p.namespace + "-new"
	spec.Options.Timeout, spec.Options.RollbackOnFailure, spec.Options.CreateNamespace = time.Second, true, true

	fails := func(chart *chart.Package) release.Outcome {
		t.Helper()

		outcome, err := p.Apply(t.Context(), spec, chart, release.Intent{Create: true})

		var failed *release.FailedError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), "It was uninstalled.") || outcome.Unseen {
			t.Fatalf("%v, unseen %v", err, outcome.Unseen)
		}

		if n := p.leases(t, spec.Name); n > 0 {
			t.Errorf("%d Leases are left", n)
		}

		return outcome
	}

	t.Cleanup(func() { p.discard(t, spec.Namespace) })

	all := []string{"ConfigMap " + spec.Namespace + "/after", "ConfigMap " + spec.Namespace + "/before",
		"ConfigMap " + spec.Namespace + "/kept", definition, "Namespace " + spec.Namespace}
	same(t, "left", fails(littering(t, kind)).Left, all)

	for _, left := range all[:3] {
		name := left[strings.LastIndex(left, "/")+1:]
		if _, err := p.real.API().CoreV1().ConfigMaps(spec.Namespace).Get(t.Context(), name,
			metav1.GetOptions{}); err != nil {
			t.Errorf("%s: %v", left, err)
		}
	}

	// Earlier objects do not count as its leftovers.
	same(t, "left the second time", fails(littering(t, kind)).Left, all[:3])

	simple := packageOf(t, kubetest.Chart("web", "1.0.0", map[string]string{
		"templates/pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: never, annotations: {" +
			kubetest.NeverReadyAnnotation + ": \"true\"}}\nspec: {containers: [{name: a, image: registry.example/a:1}]}\n",
	}))
	same(t, "left of nothing", fails(simple).Left, []string(nil))
}

// An installation that never began leaves no more than a namespace, and no Lease.
func TestApply_namesWhatIsLeftOfNone(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	spec := p.spec(nil)
	spec.Namespace = p.namespace + "-new"
	spec.Options.CreateNamespace = true

	t.Cleanup(func() { p.discard(t, spec.Namespace) })

	outcome, err := p.Apply(t.Context(), spec, packageOf(t, kubetest.Broken.Package("1.0.0")),
		release.Intent{Create: true})
	if !errors.Is(err, release.ErrTemplate) || outcome.Unseen {
		t.Errorf("%v, unseen %v", err, outcome.Unseen)
	}

	same(t, "left", outcome.Left, []string{"Namespace " + spec.Namespace})

	if n := p.leases(t, spec.Name); n > 0 {
		t.Errorf("%d Leases are left", n)
	}
}

// When a cluster goes away during an installation, what is left is unknown.
func TestApply_clusterGoesAway(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	proxy := newFaultProxy(t, p.real)
	p.Cluster = &release.Cluster{API: proxy.client, Slots: client.NewSlots(0), Pause: pause, LockDuration: lockDuration,
		Grace: time.Second, UnreachableTimeout: time.Second}

	gone := false
	proxy.fault = func(call string, _ int) fault {
		gone = gone || strings.HasPrefix(call, "POST ") && strings.Contains(call, "/configmaps")
		// That of the Lease would be repeated for long.
		if gone && !strings.Contains(call, "/leases") {
			return cut
		}

		return pass
	}

	outcome, err := p.Apply(t.Context(), p.spec(nil), oneMap(t, "1.0.0", "a"), release.Intent{Create: true})
	if err == nil || !outcome.Unseen || len(outcome.Left) > 0 {
		t.Errorf("%v, unseen %v, left %v", err, outcome.Unseen, outcome.Left)
	}

	if !slices.ContainsFunc(proxy.calls, func(call string) bool { return strings.HasPrefix(call, "POST ") }) {
		t.Error("nothing was begun")
	}
}
