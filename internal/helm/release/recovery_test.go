package release_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/talosop/terraform-provider-talosop/internal/helm/release"
	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubetest"
)

func toJSON(t *testing.T, value any) string {
	t.Helper()

	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

// Objects that only failed revisions had are forgotten by Helm.
func TestApply_removesLeftovers(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	files := func(maps ...string) map[string]string {
		all := map[string]string{}
		for _, name := range maps {
			all["templates/"+name+".yaml"] = configMap(name, "")
		}

		return all
	}

	good := packageOf(t, kubetest.Chart("web", "1.0.0", files("stays")))
	bad := files("stays", "left", "kept", "adopted")
	bad["templates/kept.yaml"] = strings.Replace(configMap("kept", ""), "{name: kept}",
		`{name: kept, annotations: {helm.sh/resource-policy: keep}}`, 1)
	bad["templates/hook.yaml"] = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: hook\n  annotations: " +
		"{helm.sh/hook: post-upgrade}\n" +
		"spec: {backoffLimit: 0, template: {metadata: {annotations: {" + kubetest.FailAnnotation +
		": \"exit code 1: no\"}}, " +
		"spec: {restartPolicy: Never, containers: [{name: main, image: a}]}}}\n"

	spec := p.spec(nil)
	p.apply(t, spec, good, release.Intent{Create: true})

	if _, err := p.Apply(t.Context(), spec, packageOf(t, kubetest.Chart("web", "2.0.0", bad)),
		release.Intent{}); err == nil {
		t.Fatal("a hook that fails is not reported")
	}

	same(t, "after the failure", p.configMaps(t), []string{"adopted=", "kept=", "left=", "stays="})

	// Another chart owns it by now.
	other := p.spec(nil)
	other.Name.Name, other.Options.TakeOwnership = "other", true
	p.apply(t, other, packageOf(t, kubetest.Chart("other", "1.0.0", files("adopted"))), release.Intent{Create: true})

	spec.Values = map[string]any{"more": true}
	outcome := p.apply(t, spec, good, release.Intent{})

	same(t, "done", outcome.Done, []string{
		"upgraded to revision 3", "removed ConfigMap " + p.namespace + "/left, a leftover of a failed revision",
	})
	same(t, "after the recovery", p.configMaps(t), []string{"adopted=", "kept=", "stays="})
}

// A record that cannot be read hides no others, and is not written over.
func TestRecords_unreadable(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), oneMap(t, "1.0.0", "a")
	spec := p.spec(nil)
	secrets := p.real.API().CoreV1().Secrets(p.namespace)

	for _, message := range []string{"1", "2", "3"} {
		spec.Values = map[string]any{"message": message}
		p.apply(t, spec, chart, release.Intent{})
	}

	damage := func(name string) {
		patch := []byte(`{"data":{"release":"` + "bm90IGEgcmVjb3Jk" + `"}}`)
		if _, err := secrets.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	damage("sh.helm.release.v1.web.v2")
	same(t, "statuses", p.statuses(t, spec.Name), "superseded unreadable deployed")

	if outcome := p.apply(t, spec, chart, release.Intent{}); len(outcome.Done) > 0 {
		t.Errorf("done: %v", outcome.Done)
	}

	damage("sh.helm.release.v1.web.v3")

	_, err := p.Apply(t.Context(), spec, chart, release.Intent{})
	if !errors.Is(err, release.ErrUnreadable) || !strings.Contains(err.Error(), "sh.helm.release.v1.web.v3") {
		t.Errorf("apply over it: %v", err)
	}

	if err := p.Remove(t.Context(), spec.Name, release.RemoveOptions{}); !errors.Is(err, release.ErrUnreadable) {
		t.Errorf("remove without it: %v", err)
	}

	if err := secrets.Delete(t.Context(), "sh.helm.release.v1.web.v3", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	damage("sh.helm.release.v1.web.v1")

	if _, err := secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "no-record", Labels: map[string]string{"owner": "helm", "name": "elsewhere"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	same(t, "statuses", p.statuses(t, spec.Name), "unreadable unreadable")
}

// What helm began itself is left alone for a time, and finished then.
func TestApply_afterHelmUninstall(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), packageOf(t, kubetest.Simple.Package("1.0.0"))
	spec, helm := p.spec(nil), kubetest.Helm(t, p.real)
	p.apply(t, spec, chart, release.Intent{Create: true})

	if _, text, err := helm("uninstall", "web", "-n", p.namespace, "--keep-history"); err != nil {
		t.Fatal(text)
	}

	outcome := p.apply(t, spec, chart, release.Intent{Create: true})
	same(t, "done", outcome.Done, []string{"installed revision 2"})
	same(t, "statuses", p.statuses(t, spec.Name), "superseded deployed")

	if err := p.Remove(t.Context(), spec.Name,
		release.RemoveOptions{KeepHistory: true, Wait: true, Timeout: testTimeout}); err != nil {
		t.Fatal(err)
	}

	same(t, "statuses", p.statuses(t, spec.Name), "superseded uninstalled")
	same(t, "objects", p.configMaps(t), []string(nil))

	// The real helm reads the rest.
	if text, _, err := helm("history", "web", "-n", p.namespace); err != nil || !strings.Contains(text, "uninstalled") {
		t.Errorf("helm history: %v\n%s", err, text)
	}
}

// The deployed revision has objects that the failed one after it has not: Helm forgets those.
func TestRemove_failedUpgrade(t *testing.T) {
	t.Parallel()

	p := newPlace(t)
	spec := p.spec(nil)
	p.apply(t, spec, oneMap(t, "1.0.0", "a", "b"), release.Intent{Create: true})

	spec.Options.Timeout = 2 * time.Second
	bad := kubetest.Simple.Files("2.0.0")
	bad["values.yaml"] = strings.Replace(bad["values.yaml"], "podAnnotations: {}",
		"podAnnotations: {"+kubetest.NeverReadyAnnotation+": \"true\"}", 1)

	if _, err := p.Apply(t.Context(), spec, packageOf(t, kubetest.Chart("simple", "2.0.0", bad)),
		release.Intent{}); err == nil {
		t.Fatal("what never gets ready is ready")
	}

	// As if the upgrade had been killed before it removed anything.
	if _, err := p.API.ApplyObject(t.Context(), map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a", "namespace": p.namespace, "annotations": map[string]any{
			"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": p.namespace,
		}},
	}); err != nil {
		t.Fatal(err)
	}

	if err := p.Remove(t.Context(), spec.Name, release.RemoveOptions{Wait: true, Timeout: testTimeout}); err != nil {
		t.Fatal(err)
	}

	same(t, "objects", p.configMaps(t), []string(nil))
}

func TestApply_createsNamespace(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), oneMap(t, "1.0.0", "a")
	spec := p.spec(nil)
	spec.Name.Namespace = p.namespace + "-made"

	if _, err := p.Apply(t.Context(), spec, chart, release.Intent{Create: true}); err == nil ||
		!strings.Contains(err.Error(), "create_namespace = true") {
		t.Fatalf("without a namespace: %v", err)
	}

	spec.Options.CreateNamespace = true
	outcome := p.apply(t, spec, chart, release.Intent{Create: true})
	same(t, "done", outcome.Done, []string{"created namespace " + spec.Namespace, "installed revision 1"})

	// It is deleted with the release, and recreated.
	namespaces := p.real.API().CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), spec.Namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	spec.Options.Timeout = 2 * time.Minute
	p.apply(t, spec, chart, release.Intent{Create: true})

	if _, err := p.real.API().CoreV1().ConfigMaps(spec.Namespace).Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}

	t.Cleanup(func() {
		_ = namespaces.Delete(context.WithoutCancel(t.Context()), spec.Namespace, metav1.DeleteOptions{})
	})
}

// Two runs with the same wish install once.
func TestApply_runsWaitForEachOther(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), packageOf(t, kubetest.Simple.Package("1.0.0"))
	spec := p.spec(nil)

	var (
		group sync.WaitGroup
		mu    sync.Mutex
		done  []string
	)

	for range 3 {
		group.Go(func() {
			outcome, err := p.Apply(t.Context(), spec, chart, release.Intent{Create: true})
			if err != nil {
				t.Error(err)
			}

			mu.Lock()
			defer mu.Unlock()

			done = append(done, outcome.Done...)
		})
	}

	group.Wait()
	same(t, "done", done, []string{"installed revision 1"})
}

// A chart that helm installed is taken over without a change of its objects.
func TestApply_patchesAndHistory(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), oneMap(t, "1.0.0", "a")
	spec := p.spec(nil)
	spec.Options.MaxHistory, spec.Options.Description = 2, "by talosop"

	for _, message := range []string{"1", "2", "3", "4"} {
		spec.Values = map[string]any{"message": message}
		p.apply(t, spec, chart, release.Intent{})
	}

	have := p.observed(t, spec.Name)
	if last, _ := have.Last(); len(have.History) != 2 || last.Number != 4 || last.Description != "by talosop" {
		t.Errorf("history: %+v", have.History)
	}

	// The earlier values are gone unless they are requested.
	spec.Values = nil
	p.apply(t, spec, chart, release.Intent{})
	same(t, "objects", p.configMaps(t), []string{"a=web "})

	spec.Values = map[string]any{"message": "5"}
	p.apply(t, spec, chart, release.Intent{})

	spec.Values, spec.Options.Reuse = nil, release.ReuseUserValues
	p.apply(t, spec, chart, release.Intent{})
	same(t, "objects", p.configMaps(t), []string{"a=web 5"})
}

// When a step does not change a history, another client is the cause. The run does not repeat the step for ever.
func TestApply_sameStepTwice(t *testing.T) {
	t.Parallel()

	p, chart := newPlace(t), oneMap(t, "1.0.0", "a")
	spec := p.spec(nil)
	p.apply(t, spec, chart, release.Intent{Create: true})

	undo := func() {
		p.rewrite(t, spec.Name, 1, func(r *helmrelease.Release) { r.SetStatus(helmrelease.StatusPendingInstall, "") })
	}
	undo()

	proxy, marked := newFaultProxy(t, p.real), 0
	proxy.fault = func(call string, _ int) fault {
		switch {
		case strings.HasPrefix(call, "PUT ") && strings.Contains(call, "/secrets/"):
			marked++
		case marked > 0 && strings.HasPrefix(call, "GET ") && strings.Contains(call, "/secrets?"):
			undo()
		}

		return pass
	}
	p.API = proxy.client

	_, err := p.Apply(t.Context(), spec, chart, release.Intent{})
	if err == nil || !strings.Contains(err.Error(), "another client changes it too") {
		t.Fatalf("a step that has no effect: %v", err)
	}

	if marked != 1 {
		t.Errorf("it was taken %d times", marked)
	}
}
